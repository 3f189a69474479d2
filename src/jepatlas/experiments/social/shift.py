"""What a map between agents withstands: states of another kind than it was fitted on, and agents of other widths.

Fitted on some categories (or on driving straight), scored on held-out states of these and of the others. A part that
varies less has a lower R² for any map, so the price of the shift is counted from a map that was fitted on as many
states of the part that is scored. Agents of different width are joined by rectangular maps, beside PCA of such widths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.alignment.maps import RidgeMap
from jepatlas.core.linear import r2
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import (
    cell,
    extremes,
    grouped,
    mean_and_interval,
    mean_and_range,
    plain,
    select,
)
from jepatlas.experiments.social.agents import PLANS, agents
from jepatlas.experiments.social.charts import Met
from jepatlas.experiments.social.collapse import UNKNOWN, collapsed_at, marked, named, unheard, weighed
from jepatlas.experiments.social.measures import EFFORT
from jepatlas.experiments.social.meetings import meetings, paired
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.shift_shown import shift_figure, shift_table, width_figure, width_table
from jepatlas.experiments.social.shift_widths import lower, steeper, width_verdict, widths

__all__ = ["EXPERIMENT", "home", "judge", "shifted"]

CHEAP = 0.1
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving", "eth80"),
    "paper": ("smallnorb",),
}

CLAIM = Claim(
    statement="A map fitted on some states serves others of another kind nearly as well; between agents of different "
    "capacity R² falls, the more the further apart they are.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Tables 5 and 6",
    measured="R² .891 in domain, .844 shifted; .891 between equal ViT-S/16, .814 from S to B, .742 from S to L",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The usual agents of every scene, and of the first scene those of all widths."""
    seeds, plan = range(seed, seed + PLANS[scale].seeds), PLANS[scale]
    usual = [trial for scene in STUDIED[scale] for trial in agents(scale, scene, seeds)]
    others = [number for number in range(len(plan.encoders)) if number != plan.usual]
    return usual + [trial for number in others for trial in agents(scale, STUDIED[scale][0], seeds, number=number)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = PLANS[scale]
    usual = select(results, width=plan.encoders[plan.usual].width)
    sides = [select(results, scene=STUDIED[scale][0], view=view) for view in range(2)]
    pairs = [
        paired(a, b, lambda met: widths(met, EFFORT[scale].rows))
        for a in sides[0]
        for b in sides[1]
        if a.at["seed"] == b.at["seed"]
    ]
    return judge(meetings(usual, shifted), pairs, plan.encoders[plan.usual].width)


def home(labels: np.ndarray, scene_labels: Sequence[str]) -> np.ndarray:
    """Which rows are of the kind that maps are fitted on: going straight, or the first half of the categories.

    >>> home(np.array(["mug", "car", "plane"]), ["car", "mug", "plane"]).tolist()
    [False, True, False]
    """
    if "straight" in scene_labels:
        return labels == "straight"
    return np.isin(labels, sorted(scene_labels)[: len(scene_labels) // 2])


def shifted(met: Met) -> dict[str, Estimate]:
    """R² within the part that was fitted on, on the other part, and there by a map of its own."""
    here = home(met.a["labels"], np.unique(met.a["labels"]).tolist())
    (fit, away), (inside, outside) = ((rows[here[rows]], rows[~here[rows]]) for rows in met.split)
    rng, count = numpy_generator(0, "shift"), min(len(fit), len(away))
    few, own = (np.sort(rng.permutation(rows)[:count]) for rows in (fit, away))
    found = {"inside": _r2(met, few, inside), "outside": _r2(met, few, outside), "own": _r2(met, own, outside)}
    found |= {"price": found["own"] - found["outside"], "pairs": float(count)}
    return {name: Estimate(value, value, value, len(outside)) for name, value in found.items()}


def _r2(met: Met, fit: np.ndarray, score: np.ndarray) -> float:
    a, b = met.a["h"], met.b["h"]
    fitted = RidgeMap(standardise=True).fit(a[fit], b[fit], groups=met.groups[fit])
    scale = np.where(fitted.map_.y_scale > 0, fitted.map_.y_scale, 1.0)
    return r2(b[score] / scale, fitted.transform(a[score]) / scale)


def judge(moved: Sequence[Result], pairs: Sequence[Result], usual: int) -> Finding:
    """The price of a shift must be surely below CHEAP in every scene, and R² surely lower between other widths and the
    lower the further apart. Scenes and widths whose agents collapsed do not count."""
    scenes = {scene: runs for (scene,), runs in grouped(moved, "scene").items() if mean_and_range(runs, "price").n}
    counts, alive = {scene: not collapsed_at(runs) for scene, runs in scenes.items()}, not collapsed_at(pairs)
    among = max(1, sum(counts.values()) + 2 * alive)
    price = {scene: mean_and_interval(runs, "price", among) for scene, runs in scenes.items()}
    apart = {"other": lower(pairs, usual, among), "ratio": steeper(pairs, among)}
    known = {name: alive and found.n > 0 for name, found in apart.items()}
    absent = [UNKNOWN for (scene,), _ in grouped(moved, "scene").items() if scene not in scenes]
    cheap = [scene for scene, found in price.items() if counts[scene] and found.high <= CHEAP]
    flat = {SCENES[scene].title: runs for scene, runs in scenes.items()} | {"pairs of widths": pairs}
    return Finding(
        weighed(
            [*map(_saved, price.values()), *apart.values(), *absent],
            [*counts.values(), *known.values(), *(False for _ in absent)],
        ),
        " ".join(_sentence(scene, runs, price[scene]) for scene, runs in scenes.items())
        + f" A shift is cheap where its mean price over seeds is surely at most {CHEAP} of R². Between agents of width "
        f"{usual}, R² is higher than between one of them and one of another width by {cell(apart['other'])}; over all "
        f"pairs of widths it falls by {cell(apart['ratio'])} with each doubling of their ratio. Intervals hold "
        f"at 95% for all numbers that count at once.{named(flat)}",
        short=f"shift cheap in {len(cheap)} of {sum(counts.values())} scenes that count; "
        + ("widths: collapsed" if not alive else f"other widths cost {plain(apart['other'].value, 'z.3f')}"),
        verdicts=(
            *(unheard(_verdict(scene, found), counts[scene]) for scene, found in price.items()),
            *(unheard(width_verdict(name, found), alive) for name, found in apart.items() if found.n),
        ),
        figures=(shift_figure(scenes), width_figure(pairs)),
        tables=(shift_table(moved), width_table(pairs)),
    )


def _saved(price: Estimate) -> Estimate:
    """By how much a shift is cheaper than it may be."""
    return Estimate(CHEAP - price.value, CHEAP - price.high, CHEAP - price.low, price.n)


def _sentence(scene: str, runs: Sequence[Result], price: Estimate) -> str:
    inside, outside, own = (mean_and_range(runs, name) for name in ("inside", "outside", "own"))
    title = marked(SCENES[scene].title, runs)
    return (
        f"{title[:1].upper()}{title[1:]}: R² {extremes(inside)} on states like those fitted on, {extremes(outside)} on "
        f"others, and there {extremes(own)} by a map of their own; the price {cell(price)}, the mean with its "
        "interval, is "
        f"{'cheap' if price.high <= CHEAP else 'not surely cheap'}."
    )


def _verdict(scene: str, found: Estimate) -> Verdict:
    return Verdict.judge(
        f"price_{scene}",
        found,
        direction="lower",
        threshold=CHEAP,
        good="The map serves states of another kind.",
        bad="The map does not surely serve states of another kind.",
    )


EXPERIMENT = Experiment("social-shift", "Other states and other widths", CLAIM, trials, conclude)
