"""Straight lines in a latent of the controlled world, followed by dynamics, by neighbours and by their actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.experiments.planning.controlled_world import Encode, LatentSteps, true_system
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
from jepatlas.worlds import LatentWorld

__all__ = ["distant_ends", "follow_lines", "path_lengths"]

PIECES = 16  # segments of a line, and actions of a plan
APART = 1.0  # least distance of a goal; shorter ways would show only the resolution of the library
BOX = 3.0  # largest action; the noise of the law has standard deviation 1

Ends = Mapping[str, Tensor]


def distant_ends(dim: int, tasks: int, seed: int) -> Ends:
    rng = numpy_generator(seed, "ends")
    starts, goals = rng.standard_normal((2, 20 * tasks, dim))
    far = np.flatnonzero(np.linalg.norm(goals - starts, axis=1) >= APART)[:tasks]
    return {"start": torch.tensor(starts[far]), "goal": torch.tensor(goals[far])}


def follow_lines(
    world: LatentWorld, encode: Encode, rows: LatentSteps, ends: Ends, settings: Mapping[str, Any]
) -> dict[str, Tensor]:
    """True paths (b, t + 1, n) for each way to follow a line, and each size of the library."""
    latent = {name: torch.as_tensor(encode(z.numpy())) for name, z in ends.items()}
    line = waypoints(latent["start"], latent["goal"], PIECES)
    box = ActionBox.symmetric(BOX, world.dim)
    cost = LatentCost(rows.system, lambda h, goal: (h - goal).norm(dim=-1))
    planners: dict[str, Any] = {"dynamics": StraightLineConfig(PIECES).build(box)}
    h, u, h_next, z = (torch.as_tensor(part) for part in (rows.h, rows.u, rows.h_next, rows.z))
    paths = {}
    for size in settings["libraries"]:
        planners[f"actions_{size}"] = LibraryLine(Library(h[:size], u[:size], h_next[:size]), box, PIECES)
        between = z[nearest_rows(line[:, 1:-1], h[:size])]
        paths[f"neighbours_{size}"] = torch.cat([ends["start"][:, None], between, ends["goal"][:, None]], 1)
    for way, planner in planners.items():
        plan = planner(cost, latent, torch_generator(settings["recipe"]["seed"], "line"))
        walk = true_system(world).rollout(ends["start"], plan.actions)
        paths[way] = torch.cat([ends["start"][:, None], walk], 1)
    return paths


def path_lengths(path: Tensor, goal: Tensor, seed: int) -> dict[str, Estimate]:
    """Length of a path relative to the straight way, and its final distance from the goal as a share of the way."""
    way = (goal - path[:, 0]).norm(dim=-1)
    numbers = {"detour": detour(path), "miss": (path[:, -1] - goal).norm(dim=-1) / way}
    columns = {name: values.numpy() for name, values in numbers.items()}

    def medians(weights: np.ndarray) -> dict[str, float]:
        times = weights.round().astype(int)
        return {name: float(np.median(np.repeat(values, times))) for name, values in columns.items()}

    return bootstrap(medians, len(path), numpy_generator(seed, "tasks"), replicates=200)
