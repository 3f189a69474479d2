"""Tasks in a world: starts, and goals that can be reached from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds import ActionWorld, FlatWorld

__all__ = ["Tasks", "draw_tasks"]


@dataclass(frozen=True)
class Tasks:
    """From where to where."""

    starts: np.ndarray  # (b, n)
    goals: np.ndarray  # (b, n)


def draw_tasks(world: ActionWorld, count: int, seed: int) -> Tasks:
    """Starts and goals that can be reached from them, other ones than any training has seen."""
    if count < 1:
        raise InputError(f"At least 1 task is needed, but {count} were asked for.")
    rng = numpy_generator(seed, "tasks")
    starts = world.starts(count, rng) if isinstance(world, FlatWorld) else world.states(count, rng)
    return Tasks(starts, world.goals(starts, rng))
