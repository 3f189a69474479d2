"""What one trial of `optimal-planning` does: a linear world in two coordinates, and plans that are made in both.

The latent is a matrix times the state, h = M z; its dynamics are fitted to steps as they are seen there. Actions are
those of LQR, which is exact, and of a search (MPPI, with the same noise in both) for the sequence that ends nearest to
a goal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.core.records import Plan
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.experiments.alignment.latent_pairs import random_chart
from jepatlas.experiments.energy.learned_energies import exactly
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.planning import ActionBox, LatentCost, LQRConfig, MPPIConfig, Quadratic, QuadraticCost
from jepatlas.worlds import LinearQuadratic
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["CASES", "PROBLEMS", "run"]

PROBLEMS = {"lqr": "LQR", "goal": "goal-reaching"}
CASES = {
    "invariant": "rotated, cost invariant",
    "conjugated": "rotated, cost conjugated",
    "unconjugated": "rotated, cost neither",
    "sheared": "not orthogonal, cost invariant",
}
STEPS = 2000  # that dynamics are fitted to
FREE = 1e3  # a box that no action of LQR reaches
UNEVEN = 5.0  # a cost that is not invariant weighs directions by 1 / UNEVEN to UNEVEN
SHEAR = 3.0  # condition number of the map that is no rotation


@dataclass(frozen=True)
class Case:
    """Coordinates h = M z, what costs weigh in them, and what they weigh in the state."""

    chart: np.ndarray
    inside: Quadratic
    true: Quadratic


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """How far plans in the latent are from plans in the state."""
    del folder
    dim, seed, tasks = settings["dim"], settings["seed"], settings["tasks"]
    world = LinearQuadratic(dim=dim, actions=dim // 2, seed=seed)
    rng = numpy_generator(seed, "optimal planning", dim)
    ends = {name: torch.tensor(rng.standard_normal((tasks, dim))) for name in ("start", "goal")}
    found = {}
    for name, case in _cases(dim, rng).items():
        for problem in PROBLEMS:
            latent = _fitted(world, case.chart, rng)
            gaps = _gaps(problem, (world.system, latent), case, ends, settings)
            found |= {f"{problem}_{name}_{what}": exactly(gap, tasks) for what, gap in gaps.items()}
    return {
        "status": "finished",
        "verdicts": as_verdicts(found, "of plans in the latent, beside those in the state", "lower"),
    }


def _cases(dim: int, rng: np.random.Generator) -> dict[str, Case]:
    turn, shear = semi_orthogonal(dim, dim, rng), random_chart(dim, SHEAR, rng)
    even = Quadratic.isotropic(dim, dim // 2, state=1.0, action=0.1, final=1.0)
    spread = np.diag(np.geomspace(1 / UNEVEN, UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    return {
        "invariant": Case(turn, even, even),
        "conjugated": Case(turn, uneven.conjugate(turn), uneven),
        "unconjugated": Case(turn, uneven, uneven),
        "sheared": Case(shear, even, even),
    }


def _gaps(
    problem: str,
    systems: tuple[LinearSystem, LinearSystem],
    case: Case,
    ends: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> dict[str, float]:
    """The largest difference of an action, and of a value, relative to their size; and what the plans lose in truth."""
    true_cost, inside_cost = (_cost(problem, *of) for of in zip(systems, (case.true, case.inside), strict=True))
    seen = {name: rows @ torch.tensor(case.chart.T) for name, rows in ends.items()}
    true = _plan(problem, true_cost, ends, settings)
    inside = _plan(problem, inside_cost, seen, settings)
    paid = true_cost(ends, inside.actions[:, None])[:, 0]
    return {
        "actions": _gap(inside.actions, true.actions),
        "value": _gap(inside.cost, true.cost),
        "lost": float(paid.sum() / true.cost.sum() - 1),
    }


def _fitted(world: LinearQuadratic, chart: np.ndarray, rng: np.random.Generator) -> LinearSystem:
    """The dynamics of h = M z, from steps that are seen there."""
    z, u = world.states(STEPS, rng), rng.standard_normal((STEPS, world.action_dim))
    return fit_linear_system(z @ chart.T, u, world.step(z, u) @ chart.T)


def _cost(problem: str, system: LinearSystem, weights: Quadratic) -> Cost:
    if problem == "lqr":
        return QuadraticCost(system, weights)
    root = torch.tensor(np.linalg.cholesky(weights.final_dd))

    def distance(h: Tensor, goal: Tensor) -> Tensor:
        return ((h - goal) @ root).norm(dim=-1)

    return LatentCost(system, distance)


def _plan(problem: str, cost: Cost, ends: Mapping[str, Tensor], settings: Mapping[str, Any]) -> Plan:
    horizon, actions = settings["horizon"], settings["dim"] // 2
    if problem == "lqr":
        planner: Any = LQRConfig(horizon).build(ActionBox.symmetric(FREE, actions))
    else:
        config = MPPIConfig(horizon, samples=settings["samples"], iterations=4)
        planner = config.build(ActionBox.symmetric(1.0, actions))
    return planner(cost, ends, torch_generator(settings["seed"], "plan"))


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.square().mean().sqrt())
