"""Plans in coordinates h = M z that are linear in the state, compared with plans in the state.

The dynamics in h are fitted to steps. Actions are those of LQR, which is exact, and of a search (MPPI, with the same
noise in both) for the sequence that ends nearest to a goal.
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
from jepatlas.core.seeding import torch_generator
from jepatlas.experiments.alignment.latent_pairs import random_chart
from jepatlas.planning import ActionBox, LatentCost, LQRConfig, MPPIConfig, Quadratic, QuadraticCost
from jepatlas.worlds import LinearQuadratic
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["Coordinates", "coordinates", "fitted_system", "gaps"]

STEPS = 2000  # used to fit the dynamics
FREE = 1e3  # limit of actions, never reached by LQR
UNEVEN = 5.0  # weights of directions range from 1 / UNEVEN to UNEVEN
SHEAR = 3.0  # condition number of the map that is not a rotation


@dataclass(frozen=True)
class Coordinates:
    """Coordinates h = M z, and the weights of the cost in the latent and in the state."""

    chart: np.ndarray
    inside: Quadratic
    true: Quadratic


def coordinates(dim: int, rng: np.random.Generator) -> dict[str, Coordinates]:
    turn = semi_orthogonal(dim, dim, rng)
    shear = random_chart(dim, SHEAR, rng)
    even = Quadratic.isotropic(dim, dim // 2, state=1.0, action=0.1, final=1.0)
    spread = np.diag(np.geomspace(1 / UNEVEN, UNEVEN, dim))
    uneven = Quadratic(spread, even.action_aa, spread)
    return {
        "invariant": Coordinates(turn, even, even),
        "conjugated": Coordinates(turn, uneven.conjugate(turn), uneven),
        "unconjugated": Coordinates(turn, uneven, uneven),
        "sheared": Coordinates(shear, even, even),
    }


def gaps(
    problem: str,
    systems: tuple[LinearSystem, LinearSystem],
    case: Coordinates,
    ends: Mapping[str, Tensor],
    settings: Mapping[str, Any],
) -> dict[str, float]:
    """Largest relative differences of actions and values, and the relative true cost lost by plans in the latent."""
    true_cost = _cost(problem, systems[0], case.true)
    inside_cost = _cost(problem, systems[1], case.inside)
    seen = {name: rows @ torch.tensor(case.chart.T) for name, rows in ends.items()}
    true = _plan(problem, true_cost, ends, settings)
    inside = _plan(problem, inside_cost, seen, settings)
    paid = true_cost(ends, inside.actions[:, None])[:, 0]
    return {
        "actions": _gap(inside.actions, true.actions),
        "value": _gap(inside.cost, true.cost),
        "lost": float(paid.sum() / true.cost.sum() - 1),
    }


def fitted_system(world: LinearQuadratic, chart: np.ndarray, rng: np.random.Generator) -> LinearSystem:
    """The dynamics of h = M z, fitted to steps in h."""
    z = world.states(STEPS, rng)
    u = rng.standard_normal((STEPS, world.action_dim))
    return fit_linear_system(z @ chart.T, u, world.step(z, u) @ chart.T)


def _cost(problem: str, system: LinearSystem, weights: Quadratic) -> Cost:
    if problem == "lqr":
        return QuadraticCost(system, weights)
    root = torch.tensor(np.linalg.cholesky(weights.final_dd))

    def distance(h: Tensor, goal: Tensor) -> Tensor:
        return ((h - goal) @ root).norm(dim=-1)

    return LatentCost(system, distance)


def _plan(problem: str, cost: Cost, ends: Mapping[str, Tensor], settings: Mapping[str, Any]) -> Plan:
    horizon = settings["horizon"]
    actions = settings["dim"] // 2
    if problem == "lqr":
        planner: Any = LQRConfig(horizon).build(ActionBox.symmetric(FREE, actions))
    else:
        config = MPPIConfig(horizon, samples=settings["samples"], iterations=4)
        planner = config.build(ActionBox.symmetric(1.0, actions))
    return planner(cost, ends, torch_generator(settings["seed"], "plan"))


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / other.square().mean().sqrt())
