"""One-way doors: rooms in which no symmetric energy, not even the exact one, determines which door to take.

From x to y and back is one tour through both doors, equally long for every x on it. So the symmetrised cost-to-go
(d(x, g) + d(g, x)) / 2 is constant along the wall, and a planner finds its way only if it looks ahead from one door to
the other. In small rooms, 20 steps wide, it does, so asymmetry is not tested there; in big ones it does not. This is
measured first, with exact energies, true states and true dynamics. Then learned energies are compared on the latents of
one world model and with its dynamics, so they differ by their heads only. All agents have the same tasks and planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jepatlas.core.config import to_plain
from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.energy import IQEConfig, L2Config, QRLConfig
from jepatlas.experiments.energy.learned_energies import energy_recipe
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Outcome, decide
from jepatlas.experiments.engine.seed_tables import cell, mean_cells, select
from jepatlas.experiments.planning.door_trials import BOTH_WAYS, run_exact, run_learned
from jepatlas.experiments.planning.planning_outcomes import (
    by_seed,
    difference,
    difference_criterion,
    difference_verdict,
    share,
    share_bars,
)
from jepatlas.experiments.planning.planning_trials import WORLDS, driving, model_recipe
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.worlds import Maze, Rooms

__all__ = ["EXPERIMENT", "TESTED"]

HEADS = {"iqe": IQEConfig(), "l2": L2Config()}
TESTED = "one-way rooms"
CONTROL = "small one-way rooms"  # a planner looks ahead from door to door
SMALL = Rooms(one_way=True)

CLAIM = Claim(
    statement="With one-way paths planning needs a directed energy: a quasimetric leads to goals that no symmetric "
    "energy leads to.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 3",
    assumed="that such energies are costs-to-go of a planner that does not look ahead to the goal",
)


EPISODES = {"tiny": 8, "small": 1000, "paper": 1000}  # as published for rooms; 28 of 23,000 steps lead through a door
SCALES = {"tiny": (2, 3, 1), "small": (40, 1000, 3), "paper": (200, 20_000, 5)}
"""Tasks, steps of training of the world model, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    seeds = range(seed, seed + SCALES[scale][-1])
    every = []
    for at in grid(energy=["exact"], world=(TESTED, CONTROL), seed=seeds):
        world = WORLDS[TESTED].world if at["world"] == TESTED else SMALL
        every.append(Trial(at, run_exact, _settings(scale, at["seed"], world)))
    for at in grid(energy=["learned"], world=[TESTED], seed=seeds):
        settings = _settings(scale, at["seed"], WORLDS[TESTED].world) | _learning(scale, at["seed"])
        every.append(Trial(at, run_learned, settings))
    return every


def _settings(scale: Scale, seed: int, world: Rooms | Maze) -> dict[str, Any]:
    config = to_plain(driving(scale, TESTED))
    return {"world": to_plain(world), "driving": config, "tasks": SCALES[scale][0], "seed": seed}


def _learning(scale: Scale, seed: int) -> dict[str, Any]:
    """Recipes of the world model and of the energies on its latents."""
    model = model_recipe(scale, seed, TESTED, "LeJEPA", SCALES[scale][1])
    model = replace(model, source=replace(model.source, episodes=EPISODES[scale]))
    learning = QRLConfig(offset=WORLDS[TESTED].offset)
    base = energy_recipe(scale, seed, source=StepFile(), walk=WalkConfig(), learning=learning)
    energies = {name: to_plain(replace(base, head=head)) for name, head in HEADS.items()}
    return {"recipe": to_plain(model), "energies": energies}


Agent = tuple[list[Result], str]  # the trials, and the name of the outcomes in their records


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Whether the learned quasimetric is better than the best learned symmetric energy, by the paired interval.

    Undecided if the interval contains zero, and if the exact energy is not better than its symmetrised form, because
    the world then does not test asymmetry.
    """
    del scale
    agents = _agents(results)
    best = max(("l2", BOTH_WAYS), key=lambda name: share(*agents[name]).value)
    exact = _gap(agents["exact"], agents["symmetrised exact"])
    learned = _gap(agents["iqe"], agents[best])
    outcome: Outcome = decide([learned]) if exact.low > 0 else "undecided"
    ours, other = (share(*agents[name]).value for name in ("iqe", best))
    return Finding(
        outcome,
        f"The learned quasimetric completes {ours:.2f} of the tasks, the best symmetric energy {other:.2f}.",
        criteria=(
            difference_criterion("points of success, exact − symmetrised exact", exact, "> 0, else undecided"),
            difference_criterion(
                f"points of success, learned iqe − {best}", learned, "> 0; undecided if it contains 0"
            ),
        ),
        verdicts=_verdicts(exact, learned),
        figures=(_figure(agents),),
        tables=(_table(results, agents),),
    )


def _gap(first: Agent, second: Agent) -> Estimate:
    return difference(first[0], second[0], (first[1], second[1]))


def _agents(results: Sequence[Result]) -> dict[str, Agent]:
    exact = select(results, energy="exact", world=TESTED)
    learned = select(results, energy="learned")
    known = {"exact": (exact, "directed"), "symmetrised exact": (exact, "symmetric")}
    return known | {name: (learned, name) for name in ("iqe", BOTH_WAYS, "l2")} | {"random actions": (exact, "chance")}


def _verdicts(exact: Estimate, learned: Estimate) -> tuple[Verdict, Verdict]:
    return (
        difference_verdict(
            "exact_gap",
            exact,
            good="The exact cost-to-go fails here if symmetrised: the world tests asymmetry.",
            bad="The exact cost-to-go does not fail here if symmetrised, so the world does not test asymmetry.",
        ),
        difference_verdict(
            "learned_gap",
            learned,
            good="The learned quasimetric reaches more goals than the best symmetric energy.",
            bad="It is not shown that the learned quasimetric reaches more goals than the best symmetric energy.",
        ),
    )


def _figure(agents: dict[str, Agent]) -> Bars:
    shares = [share(*agent) for agent in agents.values()]
    return share_bars("Share of completed tasks through one-way doors", list(agents), {"completed": shares})


def _table(results: Sequence[Result], agents: dict[str, Agent]) -> Table:
    small = select(results, world=CONTROL)
    every = agents | {
        "exact, rooms half as wide": (small, "directed"),
        "symmetrised exact, rooms half as wide": (small, "symmetric"),
    }
    rows = []
    for name, agent in every.items():
        success = share(*agent)
        orders = mean_cells(agent[0], [f"{name}_order", f"{name}_symmetric_order"])
        rows.append([name, cell(success, 2), by_seed(*agent), success.n, *orders])
    columns = ["energy", "completed [95%]", "of each seed", "tasks", "Spearman with the exact energy"]
    title = "Tasks from one room to the other, through one-way doors"
    return Table(title, [*columns, "with the exact one symmetrised"], rows)


EXPERIMENT = Experiment("one-way-doors", "One-way doors", CLAIM, trials, conclude)
