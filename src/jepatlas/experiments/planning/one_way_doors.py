"""One-way doors: rooms in which no symmetric energy, not even the exact one, can say which door to take.

From x to y and back is one tour through both doors, equally long for every x on it. So the symmetrised cost-to-go
(d(x, g) + d(g, x)) / 2 is flat along the wall, and a planner must see from one door to the other to find its way; in
small rooms, 20 steps wide, it does, and there asymmetry is not tested. In big ones it does not. That this is so is
measured first, with exact energies and true dynamics; only then are learned energies compared. They are learned on the
latents of one world model and used with its dynamics, so that they differ by their heads alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from jepatlas.core.config import to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy import IQEConfig, L2Config, QRLConfig
from jepatlas.experiments.energy.learned_energies import energy_recipe
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select
from jepatlas.experiments.planning.one_way_doors_runs import BOTH_WAYS, run_exact, run_learned
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share
from jepatlas.experiments.planning.planning_runs import WORLDS, driving, model_recipe
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.worlds import Maze, Rooms

__all__ = ["EXPERIMENT"]

HEADS = {"iqe": IQEConfig(), "l2": L2Config()}
TESTED = "one-way rooms"
CONTROL = "small one-way rooms"  # in which a planner sees from door to door
SMALL = Rooms(one_way=True)

CLAIM = Claim(
    statement="Where ways lead one way only, planning needs a directed energy: a quasimetric leads to goals that no "
    "symmetric energy leads to.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 3",
    assumed="that such energies are used as costs-to-go by a planner that does not see as far as the goal",
)


class Plan(NamedTuple):
    tasks: int
    episodes: int  # as many as were published for rooms: of 23,000 random steps 28 lead through a door
    steps: int  # of the world model's training
    seeds: int


SCALES = {"tiny": Plan(2, 8, 3, 1), "small": Plan(40, 1000, 1000, 3), "paper": Plan(200, 1000, 20_000, 5)}


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + SCALES[scale].seeds)
    exact = [_exact(scale, s, world) for world in (TESTED, CONTROL) for s in seeds]
    return exact + [_learned(scale, s) for s in seeds]


def _exact(scale: Scale, seed: int, where: str) -> Trial:
    world = WORLDS[TESTED].world if where == TESTED else SMALL
    return Trial({"energy": "exact", "world": where, "seed": seed}, run_exact, _settings(scale, seed, world))


def _learned(scale: Scale, seed: int) -> Trial:
    place, plan = WORLDS[TESTED], SCALES[scale]
    model = model_recipe(scale, seed, TESTED, "LeJEPA", plan.steps)
    model = replace(model, source=replace(model.source, episodes=plan.episodes))
    base = energy_recipe(scale, seed, source=StepFile(), walk=WalkConfig(), learning=QRLConfig(offset=place.offset))
    energies = {name: to_plain(replace(base, head=head)) for name, head in HEADS.items()}
    settings = _settings(scale, seed, place.world) | {"recipe": to_plain(model), "energies": energies}
    return Trial({"energy": "learned", "world": TESTED, "seed": seed}, run_learned, settings)


def _settings(scale: Scale, seed: int, world: Rooms | Maze) -> dict[str, Any]:
    config = to_plain(driving(scale, TESTED))
    return {"world": to_plain(world), "driving": config, "tasks": SCALES[scale].tasks, "seed": seed}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Undecided unless the exact symmetrised energy is behind the directed one, with a paired interval above zero; then
    it holds if the learned quasimetric is ahead of the best symmetric energy that was learned, likewise."""
    del scale
    who = _drivers(results)
    runs, learnt = who["exact"][0], who["iqe"][0]
    best = max(("l2", BOTH_WAYS), key=lambda name: _value(who[name]))
    exact, learned = difference(runs, runs, ("directed", "symmetric")), difference(learnt, learnt, ("iqe", best))
    tests, ahead = exact.low > 0, learned.low > 0
    control = select(results, world=CONTROL)
    return Finding(
        "undecided" if not tests else "holds" if ahead else "does not hold",
        f"By the exact cost-to-go {_said(who['exact'])} of the tasks are done, by the same symmetrised "
        f"{_said(who['symmetrised exact'])}: points {points(exact)}, so this world "
        f"{'tests' if tests else 'does not test'} asymmetry (in rooms half as wide "
        f"{cell(share(control, 'directed'), 2)} and {cell(share(control, 'symmetric'), 2)}). By the learned "
        f"quasimetric {_said(who['iqe'])}, by the best symmetric energy ({best}) {_said(who[best])}: points "
        f"{points(learned)}. Random actions: {_said(who['random actions'])}.",
        short=f"learned quasimetric {_value(who['iqe']):.2f}, best symmetric {_value(who[best]):.2f}",
        verdicts=_verdicts(exact, learned),
        figures=(_figure(who),),
        tables=(_table(results, who),),
    )


Driver = tuple[list[Result], str]  # the trials, and under which name they hold the outcomes


def _drivers(results: Sequence[Result]) -> dict[str, Driver]:
    exact, learned = select(results, energy="exact", world=TESTED), select(results, energy="learned")
    known = {"exact": (exact, "directed"), "symmetrised exact": (exact, "symmetric")}
    return known | {name: (learned, name) for name in ("iqe", BOTH_WAYS, "l2")} | {"random actions": (exact, "chance")}


def _value(driver: Driver) -> float:
    return share(*driver).value


def _said(driver: Driver) -> str:
    return cell(share(*driver), 2)


def _verdicts(exact: Estimate, learned: Estimate) -> tuple[Verdict, Verdict]:
    judge = partial(Verdict.judge, direction="higher", threshold=0.0)
    return (
        judge(
            "exact_gap",
            exact,
            good="Even the exact cost-to-go, symmetrised, fails here: the world tests asymmetry.",
            bad="The exact cost-to-go, symmetrised, does not fail here, so the world does not test asymmetry.",
        ),
        judge(
            "learned_gap",
            learned,
            good="The learned quasimetric leads to more goals than the best symmetric energy.",
            bad="The learned quasimetric is not shown to lead to more goals than the best symmetric energy.",
        ),
    )


def _figure(who: dict[str, Driver]) -> dict[str, Any]:
    return {
        "kind": "heatmap",
        "title": "Share of tasks through one-way doors that are done",
        "x": ["share"],
        "y": list(who),
        "matrix": [[_value(driver)] for driver in who.values()],
    }


def _table(results: Sequence[Result], who: dict[str, Driver]) -> dict[str, Any]:
    small = select(results, world=CONTROL)
    both = who | {
        "exact, rooms half as wide": (small, "directed"),
        "symmetrised exact, rooms half as wide": (small, "symmetric"),
    }
    rows = [
        [
            name,
            _said(driver),
            by_seed(*driver),
            share(*driver).n,
            *(cell(mean_and_range(driver[0], f"{name}_{order}")) for order in ("order", "symmetric_order")),
        ]
        for name, driver in both.items()
    ]
    columns = [
        "energy",
        "done [95%]",
        "of each seed",
        "tasks",
        "Spearman with the exact energy",
        "with the exact one symmetrised",
    ]
    return {"title": "Tasks from one room to the other, through one-way doors", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("one-way-doors", "One-way doors", CLAIM, trials, conclude)
