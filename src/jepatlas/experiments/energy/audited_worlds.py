"""Worlds whose energies are audited, and controls: energies that are not quasimetrics.

Each control, at points of the plane, lacks one condition:

    squared L2       ‖y − x‖²                         no length: two steps are cheaper than one
    quadratic action min ∫₀¹ ‖v − W‖² dt = ‖d − W‖²   fixed time: trajectories do not concatenate
    free downhill    L = Σ v⁺,  E = Σ (y − x)⁺        no lower bound c‖v‖: distinct points at energy 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.energy import exact_worlds, solved_worlds
from jepatlas.experiments.energy.exact_worlds import ExactWorld, Size

__all__ = ["BROKEN", "CONTROLS", "WORLDS"]

Make = Callable[[Size, int], ExactWorld]
DRIFT = np.array([0.4, 0.0])  # the current of the quadratic action

WORLDS: dict[str, Make] = {
    "one-way-grid": exact_worlds.one_way_grid,
    "grid-with-doors": exact_worlds.door_grid,
    "costly-grid": exact_worlds.costly_grid,
    "cliff-grid": exact_worlds.cliff_grid,
    "cliff-walking": lambda size, seed: exact_worlds.gym_table("CliffWalking-v1"),
    "frozen-lake": lambda size, seed: exact_worlds.gym_table("FrozenLake8x8-v1"),
    "slow-current": partial(exact_worlds.constant_current, speed=0.6),
    "even-current": partial(exact_worlds.constant_current, speed=1.0),
    "fast-current": partial(exact_worlds.constant_current, speed=1.6),
    "shear-current": solved_worlds.shear,
    "vortex-current": solved_worlds.vortex,
    "interval-maps": exact_worlds.interval_maps,
    "strained-maps": exact_worlds.strained_maps,
    "landmarks": solved_worlds.landmarks,
    "sizes": exact_worlds.sizes,
    "edit-distance": exact_worlds.edits,
    "rules": exact_worlds.rules,
}


def _control(energy: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Make:
    return lambda size, seed: ExactWorld(energy, numpy_generator(seed, "points").normal(size=(size.states, 2)))


CONTROLS: dict[str, Make] = {
    "squared-l2": _control(lambda x, y: np.square(y - x).sum(-1)),
    "quadratic-action": _control(lambda x, y: np.square(y - x - DRIFT).sum(-1)),
    "free-downhill": _control(lambda x, y: np.maximum(y - x, 0).sum(-1)),
}

BROKEN = {
    "squared-l2": {"midpoints"},
    "quadratic-action": {"identity", "midpoints"},
    "free-downhill": {"indiscernibles"},
}
"""Axioms that the audit must report as violated in each control."""
