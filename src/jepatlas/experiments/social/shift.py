"""What a map between agents withstands: states of another kind than it was fitted on, and agents of other widths.

Maps are fitted on some categories (or on driving straight) and scored on held-out states of these and of the others.
A part that varies less has a lower R² for any map, so the price of a shift is counted from a map fitted on as many
states of the part that is scored. Agents of different widths are related by rectangular maps, beside PCA of the same
widths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from jepatlas.core.figures import Bars, Heatmap, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.run_tables import number, run_table
from jepatlas.experiments.engine.seed_tables import (
    bars,
    cell,
    extremes,
    grouped,
    mean_and_interval,
    mean_and_range,
    plain,
    select,
)
from jepatlas.experiments.social.agent_pairs import pair_result, pair_results, pairs_of_views
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.decisions import (
    UNKNOWN,
    collapse_note,
    collapsed_seeds,
    decide,
    informative,
    measured_groups,
)
from jepatlas.experiments.social.pair_measures import EFFORT
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.shift_measures import measure_shift, measure_widths, r2_below_usual, r2_per_doubling
from jepatlas.experiments.social.trained_agents import agent_trials

__all__ = ["EXPERIMENT", "judge"]

MAX_PRICE = 0.1
STUDIED: dict[Scale, tuple[str, ...]] = {
    "tiny": ("rendered",),
    "small": ("rendered", "driving", "eth80"),
    "paper": ("smallnorb",),
}
PARTS = {
    "inside": "states like those fitted on",
    "outside": "other states",
    "own": "other states, by a map of their own",
}

CLAIM = Claim(
    statement="A map fitted on some states serves others of another kind nearly as well; between agents of different "
    "capacity R² falls, the more the further apart they are.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Tables 5 and 6",
    measured="R² .891 in domain, .844 shifted; .891 between equal ViT-S/16, .814 from S to B, .742 from S to L",
)


def trials(scale: Scale, seed: int) -> list[Trial]:
    """The usual agents of every scene, and those of all widths for the first scene."""
    plan = PLANS[scale]
    seeds = range(seed, seed + plan.seeds)
    found = [trial for scene in STUDIED[scale] for trial in agent_trials(scale, scene, seeds)]
    for encoder in range(len(plan.encoders)):
        if encoder != plan.usual:
            found += agent_trials(scale, STUDIED[scale][0], seeds, number=encoder)
    return found


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = PLANS[scale]
    usual_width = plan.encoders[plan.usual].width
    agents = select(results, scene=STUDIED[scale][0])
    measure = partial(measure_widths, most=EFFORT[scale].rows)
    width_pairs = [pair_result(a, b, measure) for a, b in pairs_of_views(agents)]
    return judge(pair_results(select(results, width=usual_width), measure_shift), width_pairs, usual_width)


def judge(shifted: Sequence[Result], width_pairs: Sequence[Result], usual_width: int) -> Finding:
    """The price of a shift must significantly be below MAX_PRICE in every scene, and R² must significantly be lower
    between other widths and fall with their ratio. Scenes and widths with collapsed agents are excluded."""
    scenes, missing = measured_groups(shifted, "scene", "price")
    counts = {scene: not collapsed_seeds(runs) for scene, runs in scenes.items()}
    widths_count = not collapsed_seeds(width_pairs)
    among = max(1, sum(counts.values()) + 2 * widths_count)
    prices = {scene: mean_and_interval(runs, "price", among) for scene, runs in scenes.items()}
    width_losses = {
        "other": r2_below_usual(width_pairs, usual_width, among),
        "ratio": r2_per_doubling(width_pairs, among),
    }
    expected = [_saving(price) for price in prices.values()] + list(width_losses.values()) + [UNKNOWN] * missing
    counted = (
        list(counts.values()) + [widths_count and loss.n > 0 for loss in width_losses.values()] + [False] * missing
    )
    cheap = [scene for scene, price in prices.items() if counts[scene] and price.high <= MAX_PRICE]
    loss = "collapsed" if not widths_count else f"R² lost {plain(width_losses['other'].value, 'z.3f')}"
    titled = {SCENES[scene].title: runs for scene, runs in scenes.items()} | {"pairs of widths": width_pairs}
    return Finding(
        decide(expected, counted),
        f"A shift significantly costs at most {MAX_PRICE} of R² in {len(cheap)} of {sum(counts.values())} scenes. "
        f"R² lost between different widths: {cell(width_losses['other'])}.{collapse_note(titled)}",
        short=f"shift cheap in {len(cheap)} of {sum(counts.values())} scenes; other widths: {loss}",
        verdicts=(
            *(informative(_price_verdict(scene, price), counts[scene]) for scene, price in prices.items()),
            *(informative(_width_verdict(name, one), widths_count) for name, one in width_losses.items() if one.n),
        ),
        figures=(_shift_figure(scenes), _width_figure(width_pairs)),
        tables=(_shift_table(shifted), _width_table(width_pairs)),
    )


def _saving(price: Estimate) -> Estimate:
    """How far the price is below its maximum."""
    return Estimate(MAX_PRICE - price.value, MAX_PRICE - price.high, MAX_PRICE - price.low, price.n)


def _price_verdict(scene: str, price: Estimate) -> Verdict:
    return Verdict.judge(
        f"price_{scene}",
        price,
        direction="lower",
        threshold=MAX_PRICE,
        good="The map serves states of another kind.",
        bad="The map does not significantly serve states of another kind.",
    )


def _width_verdict(name: str, loss: Estimate) -> Verdict:
    what = "between agents of different widths" if name == "other" else "the further apart the widths are"
    return Verdict.judge(
        f"r2_lost_{name}",
        loss,
        direction="higher",
        threshold=0.0,
        good=f"R² is significantly lower {what}.",
        bad=f"R² is not significantly lower {what}.",
    )


def _shift_figure(scenes: Mapping[str, Sequence[Result]]) -> Bars:
    series = []
    for name, title in PARTS.items():
        series.append(bars(title, [mean_and_range(runs, name) for runs in scenes.values()]))
    return Bars(
        title="Held-out R² of maps fitted on a part of the states",
        y_label="held-out R²",
        names=list(scenes),
        series=series,
        note="Means over seeds with the lowest and highest.",
    )


def _shift_table(shifted: Sequence[Result]) -> Table:
    places = {"scene": lambda run: SCENES[run.at["scene"]].title, "seed": "seed"}
    measured = {
        "pairs fitted": number("pairs", ".0f"),
        **{f"R², {title}": number(name) for name, title in PARTS.items()},
        "price": number("price"),
        "directions": number("directions", ".1f"),
    }
    return run_table("Shift (published: .891 within, .844 shifted)", shifted, places, measured, status="agents")


def _width_figure(pairs: Sequence[Result]) -> Heatmap:
    """Mean held-out R² over seeds between all widths."""
    down, across = (sorted({pair.at[name] for pair in pairs}) for name in ("width", "to"))
    found = grouped(pairs, "width", "to")
    matrix = []
    for one in down:
        matrix.append([mean_and_range(found.get((one, other), []), "r2").value for other in across])
    return Heatmap(
        title="Held-out R² from one width (rows) to another (columns)",
        matrix=matrix,
        x=[str(width) for width in across],
        y=[str(width) for width in down],
    )


def _width_table(pairs: Sequence[Result]) -> Table:
    measures = {"r2": "R²", "r2_raw": "R², raw latents", "dsc": "DSC", "nos_10": "NOS@10", "r2_pca": "R², PCA"}
    rows = []
    for (one, other), runs in grouped(pairs, "width", "to").items():
        scores = [extremes(mean_and_range(runs, name)) for name in measures]
        rows.append([f"{one} → {other}", *scores, extremes(mean_and_range(runs, "directions"), 1)])
    title = "Widths (published: S to B .814, S to L .742): means over seeds (lowest to highest)"
    return Table(title, ["widths", *measures.values(), "directions"], rows)


EXPERIMENT = Experiment("social-shift", "Other states and other widths", CLAIM, trials, conclude)
