"""Value-guided planning: does an energy that is learned lead to goals that Euclidean distance in latents does not?

The methods of the published table, and LeJEPA and IE-JEPA, in two rooms, a maze, and the same with one-way doors. The
published figures stand beside ours; worlds, networks and planner are not the same, so what can be compared is which of
two methods is ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, grouped, select
from jepatlas.experiments.planning.planning_methods import FOUR, METHODS
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share
from jepatlas.experiments.planning.planning_runs import WORLDS, planning_trial

__all__ = ["EXPERIMENT"]

PUBLISHED = ("small rooms", "big rooms", "maze")  # in the order of the methods' figures
GUIDED, PLAIN = "quasi value (Sep)", "prediction + VCReg"
OURS, OUR_PLAIN = "IE-JEPA", "LeJEPA"

CLAIM = Claim(
    statement="Planning by a learned quasimetric value succeeds more often than planning by distance in the latents "
    "of a predictive model.",
    source="Value-guided action planning with JEPA world models",
    measured="success in a small room, a big room and a maze: prediction with VCReg .55, .89, .54; quasi value (Sep) "
    ".71, .96, .63, over 200, 200 and 80 tasks and without error bars",
)

SCALES: dict[Scale, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "tiny": (("small rooms",), FOUR, 1),
    "small": (("small rooms", "maze", "one-way rooms"), FOUR, 3),
    "paper": (tuple(WORLDS), tuple(METHODS), 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    worlds, methods, seeds = SCALES[scale]
    places = [(world, method) for world in worlds for method in methods]
    return [planning_trial(scale, s, *place) for place in places for s in range(seed, seed + seeds)]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if quasi values are ahead of VCReg's distances in every world of the published table that was driven in,
    with paired intervals above zero; if in some world at least, in part. What IE-JEPA has ahead of LeJEPA is told."""
    worlds = SCALES[scale][0]
    gaps = {world: _gap(results, world, GUIDED, PLAIN) for world in worlds}
    ours = {world: _gap(results, world, OURS, OUR_PLAIN) for world in worlds}
    ahead = [world for world in worlds if gaps[world].low > 0]
    every = all(world in ahead for world in worlds if world in PUBLISHED)
    chance = "; ".join(f"{world} {share(select(results, world=world), 'chance').value:.0%}" for world in worlds)
    return Finding(
        "holds" if every else "holds in part" if ahead else "does not hold",
        f"Points of success, {GUIDED} less {PLAIN}, on the same tasks: {_said(gaps)}. {OURS} less {OUR_PLAIN}: "
        f"{_said(ours)}. Most often reached: {'; '.join(_best(results, world) for world in worlds)}. Random actions: "
        f"{chance}.",
        short=f"{GUIDED} ahead of {PLAIN} in {len(ahead)} of {len(worlds)} worlds",
        verdicts=(*_verdicts("guided", gaps), *_verdicts("ie_jepa", ours)),
        figures=(_figure(results, worlds),),
        tables=(_table(results), *(_pairs(results, world) for world in worlds)),
    )


def _gap(results: Sequence[Result], world: str, first: str, second: str) -> Estimate:
    return difference(select(results, world=world, method=first), select(results, world=world, method=second))


def _said(gaps: Mapping[str, Estimate]) -> str:
    return "; ".join(f"{world} {points(gap)}" for world, gap in gaps.items())


def _best(results: Sequence[Result], world: str) -> str:
    shares = {method: share(runs) for (method,), runs in grouped(select(results, world=world), "method").items()}
    best = max(shares, key=lambda method: np.nan_to_num(shares[method].value, nan=-1.0))
    return f"{world} by {best} {cell(shares[best], 2)}"


def _verdicts(name: str, gaps: Mapping[str, Estimate]) -> list[Verdict]:
    return [
        Verdict.judge(
            f"{name}_{world.replace(' ', '_').replace('-', '_')}",
            gap,
            direction="higher",
            threshold=0.0,
            good="The learned energy leads to more goals than distance in the latents.",
            bad="The learned energy is not shown to lead to more goals than distance in the latents.",
        )
        for world, gap in gaps.items()
    ]


def _figure(results: Sequence[Result], worlds: Sequence[str]) -> dict[str, Any]:
    methods = [method for (method,) in grouped(results, "method")]
    rows = [[share(select(results, world=world, method=method)).value for world in worlds] for method in methods]
    rows.append([share(select(results, world=world), "chance").value for world in worlds])
    return {
        "kind": "heatmap",
        "title": "Share of goals reached",
        "matrix": rows,
        "x": list(worlds),
        "y": [*methods, "random actions"],
    }


def _table(results: Sequence[Result]) -> dict[str, Any]:
    rows = [
        [world, method, _published(world, method), cell(share(runs), 2), by_seed(runs), share(runs).n]
        for (world, method), runs in grouped(results, "world", "method").items()
    ]
    rows += [
        [world, "random actions", "", cell(share(runs, "chance"), 2), "", share(runs, "chance").n]
        for (world,), runs in grouped(results, "world").items()
    ]
    columns = ["world", "method", "published", "here [95%]", "of each seed", "tasks"]
    return {
        "title": "Share of goals reached; starts and goals that no training has seen",
        "columns": columns,
        "rows": rows,
    }


def _published(world: str, method: str) -> str:
    figures = METHODS[method].published
    return f"{figures[PUBLISHED.index(world)]:.2f}" if figures and world in PUBLISHED else ""


def _pairs(results: Sequence[Result], world: str) -> dict[str, Any]:
    runs = {method: found for (method,), found in grouped(select(results, world=world), "method").items()}
    rows = [[one, *(points(difference(runs[one], runs[two])) if one != two else "" for two in runs)] for one in runs]
    return {
        "title": f"{world.capitalize()}: points of success, row less column, on the same tasks [95%]",
        "columns": ["", *runs],
        "rows": rows,
    }


EXPERIMENT = Experiment("value-guided", "Value-guided planning", CLAIM, trials, conclude)
