"""What one trial of `intrinsic-energy` does: make a world or a control, and audit its energies and those to a set.

Controls, each without one condition of the theorem, at points of the plane:

    squared L2       ‖y − x‖²                         no length: going in two steps is cheaper
    quadratic action min ∫₀¹ ‖v − W‖² dt = ‖d − W‖²   the time is fixed, so that trajectories do not concatenate
    free downhill    L = Σ v⁺,  E = Σ (y − x)⁺        no floor c‖v‖: distinct points at energy 0
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy.audit import audit
from jepatlas.energy.audit.triangle import relative_gap
from jepatlas.experiments.energy import exact_worlds, solved_worlds
from jepatlas.experiments.energy.exact_worlds import GOALS, ExactWorld, Size
from jepatlas.experiments.engine.experiment import as_verdicts

__all__ = ["CONTROLS", "WORLDS", "goal_set", "run"]

Make = Callable[[Size, int], ExactWorld]
ROUNDING = 1e-12
DRIFT = np.array([0.4, 0.0])  # the current of a quadratic action


def _table(env: str) -> Make:
    return lambda size, seed: exact_worlds.gym_table(env)


WORLDS: dict[str, Make] = {
    "one-way-grid": exact_worlds.one_way_grid,
    "grid-with-doors": exact_worlds.door_grid,
    "costly-grid": exact_worlds.costly_grid,
    "cliff-grid": exact_worlds.cliff_grid,
    "cliff-walking": _table("CliffWalking-v1"),
    "frozen-lake": _table("FrozenLake8x8-v1"),
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


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    make = (WORLDS | CONTROLS)[settings["world"]]
    world = make(Size(**settings["size"]), settings["seed"])
    found = audit(world.energy, world.points, tolerance=world.slack, seed=settings["seed"])
    matrix = world.matrix
    allowed = found["triangle"].threshold or 0.0
    facts = {
        "states": len(matrix),
        "slack": world.slack or 0.0,
        "allowed": allowed,
        "unreachable": float(np.isinf(matrix).sum() / (matrix.size - len(matrix))),
    }
    told = as_verdicts({name: Estimate(value, value, value, len(matrix)) for name, value in facts.items()}, "")
    verdicts = [verdict.to_json() for verdict in (*found.verdicts, goal_set(world, max(allowed, ROUNDING)))]
    return {"status": "finished", "verdicts": [*verdicts, *told]}


def goal_set(world: ExactWorld, allowed: float) -> Verdict:
    """The largest gap of E(x, G) ≤ E(x, y) + E(y, G), and of E(x, G) = min over g of E(x, g)."""
    matrix = world.matrix
    nearest = matrix[:, :GOALS].min(1)
    to_goals = nearest if world.to_goals is None else world.to_goals
    scale = float(np.median(matrix[np.isfinite(matrix) & (matrix > 0)]))
    detour = (matrix + to_goals[None, :]).min(1)
    gaps = [
        relative_gap(to_goals, np.maximum(detour, 0), scale),
        relative_gap(to_goals, nearest, scale),
        relative_gap(nearest, to_goals, scale),
    ]
    worst = float(np.max(gaps))
    return Verdict.judge(
        "goal_set",
        Estimate(worst, worst, worst, matrix.size),
        direction="lower",
        threshold=allowed,
        null=0.0,
        good="A set of goals is as far as its nearest member, and no detour is shorter.",
        bad="The energy to a set of goals is not that to its nearest member, or a detour is shorter.",
    )
