"""What a learned energy looks like in the plane: to and from a goal, beside the exact one; and the way it leads."""

from __future__ import annotations

from typing import Any

import numpy as np

from jepatlas.energy import with_unreachable
from jepatlas.workflows.energy.figures import choose_goal, grid_of, landscape
from jepatlas.workflows.energy.fitted import FittedEnergy
from jepatlas.workflows.energy.ground import Ground
from jepatlas.workflows.energy.ways import greedy_way
from jepatlas.worlds import GymTable, OneWayGrid

__all__ = ["energy_landscapes"]


def energy_landscapes(
    fitted: FittedEnergy, energies: np.ndarray, ground: Ground
) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Arrays and figures, where states are cells of a plane; what is called unreachable has no number."""
    if ground.positions is None or not ground.gridded:
        return {}, []
    arrays: dict[str, np.ndarray] = {}
    panels, ways = [], {}
    goal = choose_goal(energies if ground.truth is None else ground.truth)
    for name, matrix in (("learned", with_unreachable(energies, fitted.threshold)), ("exact", ground.truth)):
        if matrix is None:
            continue
        for way, values in (("to the goal", matrix[:, goal]), ("from the goal", matrix[goal])):
            key = f"{name}_{way.split()[0]}"
            arrays[key] = grid_of(ground.positions, values).astype(np.float32)
            panels.append((f"{name}: {way}", key))
        if (led := _way(fitted, ground, matrix[:, goal], goal)) is not None:
            arrays[f"{name}_way"] = led
            ways[f"{name}_to"] = [("the way it leads", f"{name}_way")]
    row, column = ground.positions[goal]
    return arrays, [landscape("Energies to and from a goal", panels, {}, (column, row), ways)]


def _way(fitted: FittedEnergy, ground: Ground, to_goal: np.ndarray, goal: int) -> np.ndarray | None:
    """From the farthest state, where all states of a grid or table are at hand: (k, 2), column before row."""
    world = fitted.recipe.source
    if not isinstance(world, OneWayGrid | GymTable) or len(world.positions) != len(ground.x) or ground.truth is None:
        return None
    exact = ground.truth[:, goal]
    start = int(np.where(np.isfinite(exact), exact, -1).argmax())
    return world.positions[greedy_way(world.graph, to_goal, start, goal)][:, ::-1]
