"""Do agents that choose where to look still align with each other, as well as agents with one camera?

Each agent has four cameras of a ring, none of them the other's. With the same number of images it sees all states
from one camera, from random cameras, or from those where its own prediction is worst. Agents with one camera are
those of `social-views`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jepatlas.core.figures import Bars, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.run_tables import number, numbers, run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, grouped, mean_and_interval, select
from jepatlas.experiments.social.agent_pairs import CONTROLS, NAMES, pair_results
from jepatlas.experiments.social.decisions import collapse_note, collapsed_seeds, seed_differences
from jepatlas.experiments.social.pair_figures import OVER_SEEDS, r2_figure
from jepatlas.experiments.social.pair_measures import EFFORT, measure_pair
from jepatlas.experiments.social.viewpoint_trials import CHOSEN, trials

__all__ = ["EXPERIMENT", "agents_by_cameras", "judge"]

MARGIN = 0.05
"""R² may be lower by this much."""
MAX_P = 0.05
COMPARED = 4
"""Number of judged differences in R²: encoded from one or the chosen camera, against fixed and random cameras."""
POLICIES = {"fixed": "one camera", "random": "random cameras", "curious": "chosen cameras"}
CAMERAS = {"one": "encoded from one camera", "own": "encoded from its own choice"}
CLAIM = Claim(
    statement="Agents that choose their own viewpoints align as well as agents with fixed cameras.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, which names it as an "
    "open question",
)


def agents_by_cameras(results: Sequence[Result]) -> list[Result]:
    """All agents by how they were trained (`policy`) and from which cameras states are encoded (`cameras`)."""
    found = []
    for result in results:
        policy = result.at.get("policy", "fixed")
        encodings = {"one": result}
        if policy != "fixed":
            chosen = result.record.get(CHOSEN, {})
            encodings["own"] = replace(result, folder=result.folder / CHOSEN, record=chosen)
        for cameras, agent in encodings.items():
            place = {**result.at, "policy": policy, "cameras": cameras}
            found.append(replace(agent, trial=Trial(place, result.trial.run, {})))
    return found


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    pairs = []
    for found in grouped(agents_by_cameras(results), "policy", "cameras").values():
        pairs += pair_results(found, lambda pair: measure_pair(pair, EFFORT[scale]))
    return judge(pairs, [result for result in results if "policy" in result.at])


def judge(pairs: Sequence[Result], choosers: Sequence[Result]) -> Finding:
    """By paired differences over seeds, R² of choosing agents may be at most MARGIN below that of agents with one
    camera, encoded from one camera and from the chosen ones, without fewer directions and better than chance."""
    as_well = [_as_well(pairs, cameras) for cameras in CAMERAS]
    over_fixed = {cameras: _difference(pairs, ("curious", cameras), ("fixed", "one"), "r2") for cameras in CAMERAS}
    over_random = {cameras: _difference(pairs, ("curious", cameras), ("random", cameras), "r2") for cameras in CAMERAS}
    harder = mean_and_interval(select(choosers, policy="curious"), "advantage")
    policies = {POLICIES[policy]: runs for (policy,), runs in grouped(pairs, "policy").items()}
    good_fixed = "Agents that choose align as well as those with one camera."
    good_random = "Choosing aligns better than random cameras."
    return Finding(
        _outcome(as_well),
        f"R² of choosing agents minus that of agents with one camera: {cell(over_fixed['one'])} encoded from one, "
        f"{cell(over_fixed['own'])} from the chosen ones.{collapse_note(policies)}",
        short=f"R² of curious − one camera {over_fixed['one'].value:+.3f}, own choice {over_fixed['own'].value:+.3f}",
        verdicts=(
            *(_verdict(f"over_fixed_{cameras}", one, -MARGIN, good_fixed) for cameras, one in over_fixed.items()),
            *(_verdict(f"over_random_{cameras}", one, 0.0, good_random) for cameras, one in over_random.items()),
            _verdict("advantage", harder, 0.0, "Chosen cameras are also harder with other masks."),
        ),
        figures=(_r2_figure(pairs), *_cameras_figure(choosers)),
        tables=(_pairs_table(pairs), _agents_table(choosers)),
    )


def _as_well(pairs: Sequence[Result], cameras: str) -> bool | None:
    """None if the seeds do not decide, or if agents of either kind collapsed."""
    ours = ("curious", cameras)
    theirs = ("fixed", "one")
    curious = select(pairs, policy="curious", cameras=cameras)
    if collapsed_seeds([*curious, *select(pairs, policy="fixed", cameras="one")]):
        return None
    difference = _difference(pairs, ours, theirs, "r2")
    if difference.low >= -MARGIN:
        directions = _difference(pairs, ours, theirs, "directions", among=1)
        largest_p = max(pair.value("p_r2") for pair in curious if pair.status == "finished")
        return largest_p <= MAX_P and not directions.high < 0
    return False if difference.high < -MARGIN else None


def _outcome(as_well: Sequence[bool | None]) -> Outcome:
    if any(as_well):
        return "holds" if all(as_well) else "holds in part"
    return "does not hold" if False in as_well else "undecided"


def _difference(
    pairs: Sequence[Result], ours: tuple[str, str], theirs: tuple[str, str], name: str, among: int = COMPARED
) -> Estimate:
    """Mean paired difference over seeds between two kinds of (policy, cameras)."""
    one, other = (select(pairs, policy=policy, cameras=cameras) for policy, cameras in (ours, theirs))
    return mean_interval(seed_differences(one, other, name), comparisons=among)


def _verdict(name: str, found: Estimate, threshold: float, good: str) -> Verdict:
    bad = f"Not significantly: {good[0].lower()}{good[1:]}"
    return Verdict.judge(name, found, direction="higher", threshold=threshold, good=good, bad=bad)


def _kind_title(policy: str, cameras: str) -> str:
    return POLICIES[policy] if policy == "fixed" else f"{POLICIES[policy]}, {CAMERAS[cameras]}"


def _r2_figure(pairs: Sequence[Result]) -> Bars:
    return r2_figure(
        "Held-out R² between two agents, by where they looked",
        {_kind_title(*kind): runs for kind, runs in grouped(pairs, "policy", "cameras").items()},
        tuple(NAMES),
        note=f"{OVER_SEEDS}. Controls see what the agents see.",
    )


def _cameras_figure(choosers: Sequence[Result]) -> list[Curves]:
    """Share of the states seen from each camera, by round."""
    finished = [one for one in select(choosers, policy="curious") if one.status == "finished"]
    if not finished:
        return []
    panels = []
    for (view,), runs in grouped(finished, "view").items():
        shares_src = np.array([run.record["cameras"] for run in runs])  # seeds, rounds, cameras
        rounds = range(1, shares_src.shape[1] + 1)
        lines = []
        for camera, name in enumerate(runs[0].record["views"]):
            points = []
            for seeds in shares_src[:, :, camera].T:
                points.append(Estimate(float(seeds.mean()), float(seeds.min()), float(seeds.max()), len(seeds)))
            lines.append(curve(f"{name.removeprefix('camera')}°", rounds, points))
        panels.append(CurvePanel(lines, f"agent {view + 1}"))
    return [
        Curves(
            title="Where choosing agents look",
            x_label="round",
            y_label="share of states",
            panels=panels,
            note="Means over seeds with the lowest and highest; cameras of the first round are random.",
        )
    ]


def _pairs_table(pairs: Sequence[Result]) -> Table:
    measured: dict[str, str | Callable[[Result], str]] = {
        "R²": "r2",
        "R², raw latents": "r2_raw",
        "DSC": "dsc",
        "NOS@10": "nos_10",
        **{f"R², {NAMES[name]}": f"r2_{name}" for name in (*CONTROLS, "pixels")},
        "R² beyond the best control": "beyond",
    }
    measured |= numbers(
        {"p_r2": "p", "cka": "CKA", "r2_rotation": "R² of a rotation", "directions": "directions"}, ".2f"
    )
    places = {"agents": lambda pair: _kind_title(pair.at["policy"], pair.at["cameras"]), "seed": "seed"}
    return run_table("Pairs: held-out states, with 95% intervals by groups", pairs, places, measured)


def _agents_table(choosers: Sequence[Result]) -> Table:
    """The final choice of each agent, and what choosing cost."""
    ordered = [one for policy in POLICIES for one in select(choosers, policy=policy)]
    places = {
        "policy": lambda one: POLICIES[one.at["policy"]],
        "agent": lambda one: one.at["view"] + 1,
        "seed": "seed",
    }
    measured = {
        "cameras of the last round": _final_cameras,
        "evenness of cameras": number("evenness", ".2f"),
        "evenness of a state's probabilities": number("openness", ".2f"),
        "advantage, standard deviations": number("advantage", ".2f"),
        "loss": number("loss", ".2f"),
        "images looked at": number("looked", ".0f"),
    }
    title = "Agents with several cameras (evenness is 1 if all cameras are equally frequent)"
    return run_table(title, ordered, places, measured)


def _final_cameras(one: Result) -> str:
    if "cameras" not in one.record:
        return "–"
    shares = zip(one.record["views"], one.record["cameras"][-1], strict=True)
    return ", ".join(f"{name.removeprefix('camera')}° {share:.0%}" for name, share in shares)


EXPERIMENT = Experiment("social-viewpoints", "Agents that choose where to look", CLAIM, trials, conclude)
