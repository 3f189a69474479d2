"""Value-guided planning: does a learned energy reach goals that Euclidean distance in latents does not?

The methods of the published table, and LeJEPA and IE-JEPA, in two rooms, a maze, and the same with one-way doors. The
published numbers are shown next to ours. Worlds, networks and planner differ from the study, so only the order of two
methods can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Outcome
from jepatlas.experiments.engine.seed_tables import cell, grouped, select
from jepatlas.experiments.planning.planning_methods import FOUR, METHODS
from jepatlas.experiments.planning.planning_outcomes import (
    by_seed,
    difference,
    difference_criterion,
    difference_verdict,
    points,
    share,
    share_bars,
)
from jepatlas.experiments.planning.planning_trials import WORLDS, planning_trial

__all__ = ["EXPERIMENT"]

PUBLISHED = ("small rooms", "big rooms", "maze")  # in the order of the methods' figures
GUIDED = "quasi value (Sep)"
PLAIN = "prediction + VCReg"
OURS = "IE-JEPA"
OUR_PLAIN = "LeJEPA"

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
    coordinates = grid(world=worlds, method=methods, seed=range(seed, seed + seeds))
    return [planning_trial(scale, **at) for at in coordinates]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if quasi values are better than VCReg in every tested world of the published table, and in part if in
    some world; paired intervals must be above zero."""
    worlds = SCALES[scale][0]
    gaps = {world: _gap(results, world, GUIDED, PLAIN) for world in worlds}
    ours = {world: _gap(results, world, OURS, OUR_PLAIN) for world in worlds}
    ahead = [world for world in worlds if gaps[world].low > 0]
    outcome: Outcome = "holds in part" if ahead else "does not hold"
    if all(world in ahead for world in worlds if world in PUBLISHED):
        outcome = "holds"
    name = f"points of success, {GUIDED} − {PLAIN}"
    return Finding(
        outcome,
        f"{GUIDED} is better than {PLAIN} in {len(ahead)} of {len(worlds)} worlds.",
        criteria=tuple(difference_criterion(f"{world}: {name}", gap) for world, gap in gaps.items()),
        verdicts=(*_verdicts("guided", gaps), *_verdicts("ie_jepa", ours)),
        figures=(_figure(results, worlds),),
        tables=(_table(results), *(_paired_table(results, world) for world in worlds)),
    )


def _gap(results: Sequence[Result], world: str, first: str, second: str) -> Estimate:
    return difference(select(results, world=world, method=first), select(results, world=world, method=second))


def _verdicts(name: str, gaps: Mapping[str, Estimate]) -> list[Verdict]:
    verdicts = []
    for world, gap in gaps.items():
        place = world.replace(" ", "_").replace("-", "_")
        good = "The learned energy reaches more goals than distance in the latents."
        bad = "It is not shown that the learned energy reaches more goals than distance in the latents."
        verdicts.append(difference_verdict(f"{name}_{place}", gap, good=good, bad=bad))
    return verdicts


def _figure(results: Sequence[Result], worlds: Sequence[str]) -> Bars:
    shares = {
        method: [share(select(results, world=world, method=method)) for world in worlds]
        for (method,) in grouped(results, "method")
    }
    shares["random actions"] = [share(select(results, world=world), "chance") for world in worlds]
    return share_bars("Share of goals reached", worlds, shares)


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for (world, method), runs in grouped(results, "world", "method").items():
        rows.append([world, method, _published(world, method), cell(share(runs), 2), by_seed(runs), share(runs).n])
    for (world,), runs in grouped(results, "world").items():
        chance = share(runs, "chance")
        rows.append([world, "random actions", "", cell(chance, 2), "", chance.n])
    columns = ["world", "method", "published", "here [95%]", "of each seed", "tasks"]
    return Table("Share of goals reached; starts and goals not seen in training", columns, rows)


def _published(world: str, method: str) -> str:
    numbers = METHODS[method].published
    return f"{numbers[PUBLISHED.index(world)]:.2f}" if numbers and world in PUBLISHED else ""


def _paired_table(results: Sequence[Result], world: str) -> Table:
    runs = {method: found for (method,), found in grouped(select(results, world=world), "method").items()}
    rows = []
    for one, first in runs.items():
        gaps = [points(difference(first, second)) if one != two else "" for two, second in runs.items()]
        rows.append([one, *gaps])
    title = f"{world.capitalize()}: points of success, row minus column, on the same tasks [95%]"
    return Table(title, ["", *runs], rows)


EXPERIMENT = Experiment("value-guided", "Value-guided planning", CLAIM, trials, conclude)
