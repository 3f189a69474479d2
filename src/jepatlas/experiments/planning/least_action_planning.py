"""Least action in a planner: one world model, one planner and the same tasks with three energies.

The energies are distance in the latents, an IQE learned by QRL on the latents, and least action of the observed steps.
All three use the same LeJEPA world model and its dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Heatmap, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import success_rate
from jepatlas.energy import LeastActionConfig, QRLConfig
from jepatlas.experiments.energy.learned_energies import energy_recipe, fit_energy
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Outcome, as_verdicts
from jepatlas.experiments.engine.seed_tables import cell, grouped, mean_cells, select
from jepatlas.experiments.planning.door_trials import write_steps
from jepatlas.experiments.planning.exact_planning import rank_correlations
from jepatlas.experiments.planning.planning_outcomes import (
    by_seed,
    difference,
    difference_criterion,
    outcomes,
    points,
    share,
    success_record,
)
from jepatlas.experiments.planning.planning_trials import BUDGETS, WORLDS, driving, model_recipe
from jepatlas.recipes import EnergyRecipe, StepFile, WalkConfig
from jepatlas.workflows.energy import load_fitted
from jepatlas.workflows.plan import DrivingConfig, agent_of, draw_tasks, drive, drive_at_random, load_world_model
from jepatlas.workflows.runs import train_job

__all__ = ["EXPERIMENT"]

OURS = "least action"
LEARNED = "QRL"
DISTANCE = "distance"
ENERGIES = (OURS, LEARNED, DISTANCE)
NEEDED = 0.95

CLAIM = Claim(
    statement="The energy of a world model is the infimum of accumulated local effort over admissible trajectories, "
    "and +∞ if there is none: computed in this form from observed trajectories, it guides a planner.",
    source="Intrinsic-Energy Joint Embedding Predictive Architectures Induce Quasimetric Spaces, Definition 2",
    assumed="that observed steps cover the world; the note has no experiments",
)

SCALES: dict[Scale, tuple[tuple[str, ...], int]] = {
    "tiny": (("small rooms",), 1),
    "small": (("one-way rooms", "maze", "small rooms"), 3),
    "paper": (tuple(WORLDS), 5),
}
"""Worlds, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    worlds, seeds = SCALES[scale]
    every = []
    for at in grid(seed=range(seed, seed + seeds), world=worlds):
        learning = QRLConfig(offset=WORLDS[at["world"]].offset)
        learned = energy_recipe(scale, at["seed"], source=StepFile(), walk=WalkConfig(), learning=learning)
        energies = {OURS: replace(learned, learning=LeastActionConfig()), LEARNED: learned}
        settings = {
            "recipe": to_plain(model_recipe(scale, at["seed"], at["world"], "LeJEPA")),
            "energies": {name: to_plain(recipe) for name, recipe in energies.items()},
            "driving": to_plain(driving(scale, at["world"])),
            "tasks": BUDGETS[scale].tasks,
        }
        every.append(Trial(at, run, settings))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train or resume the world model, fit the energies on its latents, and drive the same tasks with each."""
    place = Path(folder)
    record = train_job(settings["recipe"], str(place / "model"))
    if record["status"] != "finished":
        return record
    model = load_world_model(place / "model")
    write_steps(model, place / "steps.npz")
    agents = {DISTANCE: agent_of(model)}
    for name, plain in settings["energies"].items():
        recipe = replace(from_plain(EnergyRecipe, plain), source=StepFile(str(place / "steps.npz")))
        outcome = fit_energy(recipe, place / name.replace(" ", "-"))
        if outcome["status"] != "finished":
            return outcome
        agents[name] = replace(agents[DISTANCE], energy=load_fitted(place / name.replace(" ", "-")).energy)
    world = model.world
    seed = model.recipe.seed
    assert world is not None
    config = from_plain(DrivingConfig, settings["driving"])
    tasks = draw_tasks(world, settings["tasks"], seed)
    shortest = np.array([world.distance_to(g, s[None])[0] for s, g in zip(tasks.starts, tasks.goals, strict=True)])
    drives = {name: drive(world, agent, tasks, config, seed) for name, agent in agents.items()}
    chance = drive_at_random(world, tasks, config.steps, seed)
    found = success_record({name: driven.reached for name, driven in drives.items()} | {"chance": chance})
    orders = {}
    for name, agent in agents.items():
        orders[f"{name}_order"] = rank_correlations(world, agent, seed)["order"]
    correlations = as_verdicts(orders, "Spearman's correlation with the exact energy.")
    lengths = {}
    for name, driven in drives.items():
        ended = driven.reached & (shortest > 1)
        lengths[name] = (driven.steps[ended] / shortest[ended]).tolist()
    return record | found | {"verdicts": found["verdicts"] + correlations, "lengths": lengths}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if least action is better than distance in every world, and reaches 0.95 of the goals in all of them
    together; in part if it is better in some world. Paired intervals must be above zero."""
    del scale
    worlds = list(dict.fromkeys(result.at["world"] for result in results))
    gaps = {}
    for world in worlds:
        runs = select(results, world=world)
        gaps[world] = {other: difference(runs, runs, (OURS, other)) for other in (DISTANCE, LEARNED)}
    ahead = [world for world in worlds if gaps[world][DISTANCE].low > 0]
    success = _in_all_worlds(results, OURS)
    outcome: Outcome = "holds in part" if ahead else "does not hold"
    if ahead == worlds and success.value >= NEEDED:
        outcome = "holds"
    criteria = []
    for world, others in gaps.items():
        for other, gap in others.items():
            required = "> 0" if other == DISTANCE else "none"
            criteria.append(difference_criterion(f"{world}: points of success, {OURS} − {other}", gap, required))
    learned, distance = (_in_all_worlds(results, name) for name in (LEARNED, DISTANCE))
    return Finding(
        outcome,
        f"Least action reaches {success.value:.2f} of the goals, QRL {learned.value:.2f}, distance in the latents "
        f"{distance.value:.2f}.",
        criteria=tuple(criteria),
        verdicts=(
            Verdict.judge(
                "least_action_success",
                success,
                direction="higher",
                threshold=NEEDED,
                null=distance.value,
                good="Goals reached with least action. The null is distance in the latents.",
                bad="It is not shown that least action reaches enough of the goals.",
            ),
        ),
        figures=(_figure(results, worlds),),
        tables=(_table(results, gaps),),
    )


def _in_all_worlds(results: Sequence[Result], name: str) -> Estimate:
    """Success rate over the tasks of all seeds and worlds."""
    found = [done for (_,), runs in grouped(results, "world").items() for done in outcomes(runs, name).values()]
    return success_rate(np.concatenate(found)) if found else Estimate.undefined(0)


def _figure(results: Sequence[Result], worlds: Sequence[str]) -> Heatmap:
    names = [*ENERGIES, "chance"]
    matrix = [[share(select(results, world=world), name).value for world in worlds] for name in names]
    return Heatmap(title="Share of goals reached", matrix=matrix, x=list(worlds), y=[*ENERGIES, "random actions"])


def _table(results: Sequence[Result], gaps: dict[str, dict[str, Any]]) -> Table:
    rows = []
    for (world,), runs in grouped(results, "world").items():
        for name in (*ENERGIES, "chance"):
            success = share(runs, name)
            order = mean_cells(runs, [f"{name}_order"])[0] if name in ENERGIES else ""
            ahead = points(gaps[world][name]) if name in gaps[world] else ""
            title = name if name in ENERGIES else "random actions"
            row = [world, title, cell(success, 2), by_seed(runs, name), success.n, ahead, _length(runs, name), order]
            rows.append(row)
    columns = ["world", "energy", "reached [95%]", "of each seed", "tasks", "least action − this", "steps / shortest"]
    return Table("Share of goals reached, on the same tasks", [*columns, "Spearman with the exact energy"], rows)


def _length(runs: Sequence[Result], name: str) -> str:
    """Median number of steps over the shortest path, over reached goals."""
    ratios = [ratio for run in runs for ratio in run.record.get("lengths", {}).get(name, [])]
    return f"{np.median(ratios):.2f}" if ratios else ""


EXPERIMENT = Experiment("least-action", "Least action guides a planner", CLAIM, trials, conclude)
