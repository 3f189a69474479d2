"""A planner ported to another camera: dynamics and energy of one agent plan from what another one observes.

Two world models are trained apart, one on rooms, one on the same rooms mirrored, rotated and in other colours. Maps
from the latents of the second to those of the first are fitted on different numbers of shared states; nothing is
trained. The controls are the second agent's own planner, and the same planner through a map between shuffled pairs.
All agents have the same tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_in_stages
from jepatlas.experiments.engine.seed_tables import cell, curve, horizontal, mean_cells, mean_curve
from jepatlas.experiments.planning.planning_outcomes import (
    by_seed,
    difference,
    difference_criterion,
    difference_verdict,
    points,
    share,
    success_record,
)
from jepatlas.experiments.planning.planning_trials import WORLDS, driving, model_recipe
from jepatlas.recipes import WalkedWorld, WorldModelRecipe
from jepatlas.workflows.align import MapKind
from jepatlas.workflows.plan import (
    DrivingConfig,
    TrainedModel,
    agent_of,
    draw_tasks,
    drive,
    drive_at_random,
    fit_port,
    load_world_model,
    ported,
    same_world,
    shared_latents,
    shuffled_pairs,
)
from jepatlas.workflows.runs import train_job
from jepatlas.worlds import Camera

__all__ = ["EXPERIMENT", "map_name", "run"]

NEAR = 0.1  # largest loss of success that counts as small
WORLD = "small rooms"
SECOND = Camera(angle=90.0, mirror=True, palette="night")
MAPS: tuple[MapKind, ...] = ("ridge", "procrustes")
TEST = 1000  # further shared states for scoring the maps

CLAIM = Claim(
    statement="A planner can be ported to another agent's camera through a linear map of latents, without training: "
    "it reaches about as many goals as that agent's own.",
    source="our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?, for dynamics and energies",
    assumed="that both latents are the world's own coordinates up to a rotation; these rooms are not Gaussian, and the "
    "latents are wider than the state, so it is not proven here",
)


@dataclass(frozen=True)
class Plan:
    steps: int  # of training
    tasks: int
    states: tuple[int, ...]  # shared states
    seeds: int


SCALES = {
    "tiny": Plan(3, 4, (40,), 1),
    "small": Plan(1000, 100, (50, 200, 1000), 3),
    "paper": Plan(20_000, 200, (20, 50, 100, 200, 500, 1000, 5000), 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    common = {"driving": to_plain(driving(scale, WORLD)), "tasks": plan.tasks, "states": list(plan.states)}
    every = []
    for s in range(seed, seed + plan.seeds):
        recipes = [to_plain(recipe) for recipe in _recipes(scale, s)]
        every.append(Trial({"seed": s}, run, common | {"recipes": recipes, "seed": s}))
    return every


def _recipes(scale: Scale, seed: int) -> tuple[WorldModelRecipe, WorldModelRecipe]:
    """Two agents that differ in episodes, weights and camera."""
    steps = SCALES[scale].steps
    first, second = (model_recipe(scale, 2 * seed + number, WORLD, "IE-JEPA", steps) for number in range(2))
    assert isinstance(second.source, WalkedWorld)
    world = replace(WORLDS[WORLD].world, camera=SECOND)
    return first, replace(second, source=replace(second.source, world=world))


def map_name(kind: str, states: int) -> str:
    """Name of a map in records."""
    return f"{kind}_{states}"


def run(settings: Plain, folder: str) -> Plain:
    """Train both, and plan with the second camera by its own planner, by the ported one, and through shuffled pairs."""
    places = [Path(folder) / f"agent-{number}" for number in range(2)]
    records = [train_job(recipe, str(place)) for recipe, place in zip(settings["recipes"], places, strict=True)]
    if lost := [record for record in records if record["status"] != "finished"]:
        return lost[0]
    a, b = map(load_world_model, places)
    world = same_world(a, b)
    planner = agent_of(a)
    seed = settings["seed"]
    maps, scores = _maps(a, b, settings["states"], seed)
    agents = {"own": agent_of(b)} | {name: ported(planner, b.encode, into) for name, into in maps.items()}
    config = from_plain(DrivingConfig, settings["driving"])
    tasks = draw_tasks(world, settings["tasks"], seed)
    reached = {name: drive(world, agent, tasks, config, seed).reached for name, agent in agents.items()}
    assert a.world is not None  # equal to b's except for the camera
    home = drive(a.world, planner, tasks, config, seed).reached
    found = success_record(reached | {"home": home, "chance": drive_at_random(world, tasks, config.steps, seed)})
    r2 = as_verdicts(scores, "R² of the map on other states.")
    return records[0] | found | {"verdicts": found["verdicts"] + r2}


def _maps(
    a: TrainedModel, b: TrainedModel, numbers: list[int], seed: int
) -> tuple[dict[str, LinearMap], dict[str, Estimate]]:
    """Maps of every kind and number of shared states with their R², and one of shuffled pairs."""
    most = max(numbers)
    shared = shared_latents(a, b, most + TEST, seed)
    apart = shared.rows(np.arange(most, len(shared)))
    maps = {}
    scores = {}
    for kind, number in product(MAPS, numbers):
        name = map_name(kind, number)
        maps[name], scores[f"{name}_r2"] = fit_port(kind, shared.rows(np.arange(number)), apart, seed)
    shuffled = shuffled_pairs(shared.rows(np.arange(most)), numpy_generator(seed, "shuffled pairs"))
    maps["shuffled"], _ = fit_port("ridge", shuffled, apart, seed)
    return maps, scores


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """It holds if both criteria are met for the ridge map of most states, and in part if the second one is."""
    states = SCALES[scale].states
    best = map_name("ridge", states[-1])
    lost = difference(results, results, ("own", best))
    gained = difference(results, results, (best, "shuffled"))
    close = lost.high <= NEAR
    success = {name: share(results, name).value for name in ("own", best)}
    return Finding(
        outcome_in_stages(gained.low > 0, close),
        f"The ported planner reaches {success[best]:.2f} of the goals, the agent's own {success['own']:.2f}.",
        criteria=(
            Criterion("points of success, own − ported", points(lost), f"≤ {100 * NEAR:.0f}", close),
            difference_criterion("points of success, ported − shuffled pairs", gained),
        ),
        verdicts=(
            Verdict.judge(
                "lost",
                lost,
                direction="lower",
                threshold=NEAR,
                good="The ported planner is about as good as the agent's own.",
                bad="It is not shown that the ported planner is about as good as the agent's own.",
            ),
            difference_verdict(
                "beyond_shuffled",
                gained,
                good="The planner works because of the pairing of the states.",
                bad="A map between shuffled pairs works as well, so nothing is ported.",
            ),
        ),
        figures=(_figure(results, states),),
        tables=(_table(results, states),),
    )


def _figure(results: Sequence[Result], states: Sequence[int]) -> Curves:
    success = [curve(kind, states, [share(results, map_name(kind, n)) for n in states]) for kind in MAPS]
    for title, name in (("the agent's own", "own"), ("shuffled pairs", "shuffled"), ("random actions", "chance")):
        success.append(horizontal(title, states, share(results, name).value))
    fits = [mean_curve(kind, results, {n: f"{map_name(kind, n)}_r2" for n in states}) for kind in MAPS]
    return Curves(
        title="A planner on another camera",
        x_label="shared states",
        y_label="",
        log_x=True,
        panels=[CurvePanel(success, "share of goals reached [95%]"), CurvePanel(fits, "R² of the map [range]")],
    )


def _table(results: Sequence[Result], states: Sequence[int]) -> Table:
    agents = {"agent 2's own planner": "own"}
    for kind in MAPS:
        agents |= {f"ported, {kind}, {n} states": map_name(kind, n) for n in states}
    agents |= {"ported, shuffled pairs": "shuffled", "random actions": "chance", "agent 1's planner at home": "home"}
    rows = []
    for title, name in agents.items():
        success = share(results, name)
        gap = points(difference(results, results, (name, "own")))
        r2 = mean_cells(results, [f"{name}_r2"])
        rows.append([title, cell(success, 2), by_seed(results, name), success.n, gap, *r2])
    columns = ["planner", "goals reached [95%]", "of each seed", "tasks", "points relative to agent 2's own"]
    return Table("Agent 1's planner on agent 2's camera", [*columns, "R² of the map, mean over seeds [range]"], rows)


EXPERIMENT = Experiment("ported-planner", "A planner ported to another camera", CLAIM, trials, conclude)
