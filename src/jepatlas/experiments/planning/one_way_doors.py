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
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are asked for
import torch

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Heatmap, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import IQEConfig, L2Config, QRLConfig
from jepatlas.experiments.energy.learned_energies import energy_recipe, fit_energy
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, Outcome, as_verdicts, point_estimates
from jepatlas.experiments.engine.seed_tables import cell, mean_and_range, select
from jepatlas.experiments.planning.exact_planning import (
    exact_agent,
    exact_energy,
    exact_way_back,
    symmetrised,
    with_states,
)
from jepatlas.experiments.planning.planning_outcomes import by_seed, difference, points, share, success_record
from jepatlas.experiments.planning.planning_trials import WORLDS, driving, model_recipe
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.workflows.energy import load_fitted
from jepatlas.workflows.plan import (
    DrivingConfig,
    PlanningAgent,
    Tasks,
    TrainedModel,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    latent_episodes,
    load_world_model,
)
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Maze, Rooms

__all__ = ["EXPERIMENT", "run_exact", "run_learned", "through_doors"]

HEADS = {"iqe": IQEConfig(), "l2": L2Config()}
TESTED = "one-way rooms"
CONTROL = "small one-way rooms"  # a planner looks ahead from door to door
SMALL = Rooms(one_way=True)
BOTH_WAYS = "symmetrised iqe"
PAIRS = 200  # of states, for comparing learned with exact energies

CLAIM = Claim(
    statement="With one-way paths planning needs a directed energy: a quasimetric leads to goals that no symmetric "
    "energy leads to.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, section 3",
    assumed="that such energies are costs-to-go of a planner that does not look ahead to the goal",
)


class Plan(NamedTuple):
    tasks: int
    episodes: int  # as published for rooms; of 23,000 random steps 28 lead through a door
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


def through_doors(world: Rooms, count: int, seed: int) -> Tasks:
    """Tasks that start in one room and end in the other."""
    drawn = draw_tasks(world, 6 * count, seed)  # about half of them are
    across = (drawn.starts[:, 0] < world.wall_at) != (drawn.goals[:, 0] < world.wall_at)
    return Tasks(drawn.starts[across][:count], drawn.goals[across][:count])


def run_exact(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Plan with the exact cost-to-go, directed and symmetrised."""
    del folder  # nothing is trained
    world, config, seed = _given(settings)
    there = exact_energy(world)
    energies = {"directed": there, "symmetric": symmetrised(there, exact_way_back(world))}
    tasks = through_doors(world, settings["tasks"], seed)
    reached = {
        name: drive(with_states(world), exact_agent(world, energy), tasks, config, seed).reached
        for name, energy in energies.items()
    }
    chance = drive_at_random(world, tasks, config.steps, seed)
    return {"status": "finished"} | success_record(reached | {"chance": chance})


def run_learned(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train a world model, and an energy of each head on its latents."""
    place, seed = Path(folder), settings["seed"]
    record = train_job(settings["recipe"], str(place / "model"))
    if record["status"] != "finished":
        return record
    model = load_world_model(place / "model")
    agent, orders, agents = agent_of(model), {}, {}
    world, config, _ = _given(settings)
    _write_steps(model, place / "steps.npz")
    for head, plain in settings["energies"].items():
        recipe = replace(from_plain(EnergyRecipe, plain), source=StepFile(str(place / "steps.npz")))
        lost = fit_energy(recipe, place / head)
        if lost["status"] != "finished":
            return lost
        agents[head] = replace(agent, energy=load_fitted(place / head).energy)
    agents[BOTH_WAYS] = replace(agent, energy=symmetrised(agents["iqe"].energy))
    for name, one in agents.items():
        orders |= _orders(world, name, one, seed)
    tasks = through_doors(world, settings["tasks"], seed)
    found = success_record({name: drive(world, one, tasks, config, seed).reached for name, one in agents.items()})
    correlations = as_verdicts(orders, "Spearman's correlation with the exact energy.")
    return record | found | {"verdicts": found["verdicts"] + correlations}


def _write_steps(model: TrainedModel, path: Path) -> None:
    """The training steps of the model in its latents, each of cost one."""
    seen = latent_episodes(model, held=False)
    steps = {"x": seen.h.astype(np.float32), "x_next": seen.h_next.astype(np.float32)}
    write_arrays(path, steps | {"cost": np.ones(len(seen.h)), "episode": seen.episode})


@torch.no_grad()
def _orders(world: Rooms, name: str, agent: PlanningAgent, seed: int) -> dict[str, Estimate]:
    """Rank correlation with the exact energy, directed and symmetrised, over pairs of states."""
    rng = numpy_generator(seed, "pairs of states")
    x, y = world.states(PAIRS, rng), world.states(PAIRS, rng)
    there, back = exact_energy(world), exact_way_back(world)
    learned = agent.energy(agent.encode(world.observe(x)), agent.encode(world.observe(y))).double().numpy()
    ends = torch.from_numpy(x), torch.from_numpy(y)
    truths = {"order": there(*ends), "symmetric_order": symmetrised(there, back)(*ends)}
    found = {}
    for order, truth in truths.items():
        found[f"{name}_{order}"] = float(np.asarray(scipy.stats.spearmanr(learned, truth.numpy()))[0])
    return point_estimates(found, PAIRS)


def _given(settings: dict[str, Any]) -> tuple[Rooms, DrivingConfig, int]:
    return from_plain(Rooms, settings["world"]), from_plain(DrivingConfig, settings["driving"]), settings["seed"]


Agent = tuple[list[Result], str]  # the trials, and the name of the outcomes in their records


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Undecided unless the exact energy is better than its symmetrised form; then it holds if the learned quasimetric
    is better than the best learned symmetric energy. Paired intervals must be above zero."""
    del scale
    agents = _agents(results)
    runs, learnt = agents["exact"][0], agents["iqe"][0]
    best = max(("l2", BOTH_WAYS), key=lambda name: share(*agents[name]).value)
    exact = difference(runs, runs, ("directed", "symmetric"))
    learned = difference(learnt, learnt, ("iqe", best))
    outcome: Outcome = "undecided"
    if exact.low > 0:
        outcome = "holds" if learned.low > 0 else "does not hold"
    ours, other = (share(*agents[name]).value for name in ("iqe", best))
    return Finding(
        outcome,
        f"The learned quasimetric completes {ours:.2f} of the tasks, the best symmetric energy {other:.2f}.",
        criteria=(
            Criterion(
                "points of success, exact − symmetrised exact", points(exact), "> 0, else undecided", exact.low > 0
            ),
            Criterion(f"points of success, learned iqe − {best}", points(learned), "> 0", learned.low > 0),
        ),
        verdicts=_verdicts(exact, learned),
        figures=(_figure(agents),),
        tables=(_table(results, agents),),
    )


def _agents(results: Sequence[Result]) -> dict[str, Agent]:
    exact, learned = select(results, energy="exact", world=TESTED), select(results, energy="learned")
    known = {"exact": (exact, "directed"), "symmetrised exact": (exact, "symmetric")}
    return known | {name: (learned, name) for name in ("iqe", BOTH_WAYS, "l2")} | {"random actions": (exact, "chance")}


def _verdicts(exact: Estimate, learned: Estimate) -> tuple[Verdict, Verdict]:
    judge = partial(Verdict.judge, direction="higher", threshold=0.0)
    return (
        judge(
            "exact_gap",
            exact,
            good="The exact cost-to-go fails here if symmetrised: the world tests asymmetry.",
            bad="The exact cost-to-go does not fail here if symmetrised, so the world does not test asymmetry.",
        ),
        judge(
            "learned_gap",
            learned,
            good="The learned quasimetric reaches more goals than the best symmetric energy.",
            bad="It is not shown that the learned quasimetric reaches more goals than the best symmetric energy.",
        ),
    )


def _figure(agents: dict[str, Agent]) -> Heatmap:
    return Heatmap(
        title="Share of completed tasks through one-way doors",
        x=["share"],
        y=list(agents),
        matrix=[[share(*agent).value] for agent in agents.values()],
    )


def _table(results: Sequence[Result], agents: dict[str, Agent]) -> Table:
    small = select(results, world=CONTROL)
    every = agents | {
        "exact, rooms half as wide": (small, "directed"),
        "symmetrised exact, rooms half as wide": (small, "symmetric"),
    }
    rows = []
    for name, agent in every.items():
        success = share(*agent)
        orders = [cell(mean_and_range(agent[0], f"{name}_{order}")) for order in ("order", "symmetric_order")]
        rows.append([name, cell(success, 2), by_seed(*agent), success.n, *orders])
    columns = ["energy", "completed [95%]", "of each seed", "tasks", "Spearman with the exact energy"]
    title = "Tasks from one room to the other, through one-way doors"
    return Table(title, [*columns, "with the exact one symmetrised"], rows)


EXPERIMENT = Experiment("one-way-doors", "One-way doors", CLAIM, trials, conclude)
