"""What one trial of `straight-plans` does: straight lines in three latents of one world, and the true paths they are.

A line is followed in three ways. Through *dynamics* that are fitted in the latent: actions are planned for it, and
carried out in the true world. By *neighbours*: each of its points is looked up in a library of latents, and the states
behind them are the path. By *actions* of that library: what was done in the steps most like those of the line, carried
out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.engine.latent_trials import r2_of_state
from jepatlas.experiments.planning.ou_actions import See, Walked, eyes, true_system, walked
from jepatlas.planning import (
    ActionBox,
    LatentCost,
    Library,
    LibraryLine,
    StraightLineConfig,
    detour,
    nearest_rows,
    waypoints,
)
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import LatentWorld
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["LATENTS", "WAYS", "followed", "run"]

LATENTS = {"rotated": "the state, rotated", "trained": "LeJEPA", "observed": "what is observed"}
WAYS = {"dynamics": "learned dynamics", "neighbours": "neighbours", "actions": "actions of neighbours"}
PIECES = 16  # of a line, and actions of a plan
APART = 1.0  # how far a goal is at least: of shorter ways the library's grain is all that one would see
BOX = 3.0  # largest action; noise of the law has a standard deviation of 1
ROWS = 20_000  # steps that dynamics are fitted to

Ends = Mapping[str, Tensor]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train (or go on), then follow lines between the same states in all latents, with the same libraries."""
    record = train_job(settings["recipe"], folder)
    if record["status"] != "finished":
        return record
    recipe, objective = load_objective(Path(folder))
    world, seed = recipe.world, recipe.seed
    turn = semi_orthogonal(world.dim, world.dim, numpy_generator(seed, "turn"))
    sees = {"rotated": lambda z: z @ turn.T, "trained": eyes(world, objective), "observed": eyes(world, None)}
    ends = _ends(world.dim, settings["tasks"], seed)
    found = {}
    for name, see in sees.items():
        rows = walked(world, see, max(ROWS, *settings["libraries"]), numpy_generator(seed, "library"))
        found[f"{name}_r2"] = r2_of_state(rows.h[:ROWS], rows.z[:ROWS], seed)
        for way, path in followed(world, see, rows, ends, settings).items():
            found |= {f"{name}_{way}_{what}": estimate for what, estimate in _judged(path, ends["goal"], seed).items()}
    return record | {"verdicts": as_verdicts(found, "median over tasks", "lower")}


def _ends(dim: int, tasks: int, seed: int) -> Ends:
    rng = numpy_generator(seed, "ends")
    starts, goals = rng.standard_normal((2, 20 * tasks, dim))
    far = np.flatnonzero(np.linalg.norm(goals - starts, axis=1) >= APART)[:tasks]
    return {"start": torch.tensor(starts[far]), "goal": torch.tensor(goals[far])}


def followed(world: LatentWorld, see: See, rows: Walked, ends: Ends, settings: Mapping[str, Any]) -> dict[str, Tensor]:
    """True paths (b, t + 1, n) by each way, and by each size of a library."""
    seen = {name: torch.as_tensor(see(z.numpy())) for name, z in ends.items()}
    line, box = waypoints(seen["start"], seen["goal"], PIECES), ActionBox.symmetric(BOX, world.dim)
    cost = LatentCost(rows.system, lambda h, goal: (h - goal).norm(dim=-1))
    planners: dict[str, Any] = {"dynamics": StraightLineConfig(PIECES).build(box)}
    h, u, h_next, z = (torch.as_tensor(part) for part in (rows.h, rows.u, rows.h_next, rows.z))
    paths = {}
    for size in settings["libraries"]:
        planners[f"actions_{size}"] = LibraryLine(Library(h[:size], u[:size], h_next[:size]), box, PIECES)
        between = z[nearest_rows(line[:, 1:-1], h[:size])]
        paths[f"neighbours_{size}"] = torch.cat([ends["start"][:, None], between, ends["goal"][:, None]], 1)
    for way, planner in planners.items():
        plan = planner(cost, seen, torch_generator(settings["recipe"]["seed"], "line"))
        walk = true_system(world).rollout(ends["start"], plan.actions)
        paths[way] = torch.cat([ends["start"][:, None], walk], 1)
    return paths


def _judged(path: Tensor, goal: Tensor, seed: int) -> dict[str, Estimate]:
    """How many times longer than straight a path is, and how far from the goal it ends, as a share of the way."""
    way = (goal - path[:, 0]).norm(dim=-1)
    numbers = {"detour": detour(path), "miss": (path[:, -1] - goal).norm(dim=-1) / way}
    columns = {name: values.numpy() for name, values in numbers.items()}

    def medians(weights: np.ndarray) -> dict[str, float]:
        times = weights.round().astype(int)
        return {name: float(np.median(np.repeat(values, times))) for name, values in columns.items()}

    return bootstrap(medians, len(path), numpy_generator(seed, "tasks"), replicates=200)
