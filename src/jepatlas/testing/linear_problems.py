"""Linear control problems with a known optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import ortho_group
from torch import Tensor

from jepatlas.core.linear_system import LinearSystem
from jepatlas.planning import Quadratic, QuadraticCost

__all__ = ["Problem", "double_integrator", "rotation", "walker"]


@dataclass(frozen=True)
class Problem:
    cost: QuadraticCost
    info: dict[str, Tensor]

    def rotated(self, q: np.ndarray, *, weights: bool = True) -> Problem:
        """The problem in the coordinates Qz, with conjugated or unchanged weights."""
        given = self.cost.weights
        cost = QuadraticCost(self.system.conjugate(q), given.conjugate(q) if weights else given)
        return Problem(cost, {name: value @ torch.tensor(q.T) for name, value in self.info.items()})

    @property
    def system(self) -> LinearSystem:
        assert isinstance(self.cost.dynamics, LinearSystem)
        return self.cost.dynamics


def rotation(dim: int) -> np.ndarray:
    return np.asarray(ortho_group.rvs(dim, random_state=0))


def double_integrator(weights: Quadratic | None = None) -> Problem:
    """Two positions and velocities, controlled by accelerations, with three starts and one nonzero goal."""
    a, b = np.eye(4), np.zeros((4, 2))
    a[0, 2] = a[1, 3] = b[2, 0] = b[3, 1] = 0.3
    weights = weights or Quadratic.isotropic(4, 2, state=0.1, action=0.1, final=5.0)
    starts = [[1.5, 1.0, 0.0, 0.0], [-1.0, 1.0, 0.5, -0.5], [0.5, -1.5, -1.0, 0.0]]
    goals = [[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    info = {"start": torch.tensor(starts, dtype=torch.float64), "goal": torch.tensor(goals, dtype=torch.float64)}
    return Problem(QuadraticCost(LinearSystem(a, b), weights), info)


def walker() -> Problem:
    """z' = z + u / 4 with a terminal cost: equal steps on a straight line are optimal."""
    weights = Quadratic(np.zeros((2, 2)), 1e-3 * np.eye(2), np.eye(2))
    problem = double_integrator()
    info = {name: value[:, :2].contiguous() for name, value in problem.info.items()}
    return Problem(QuadraticCost(LinearSystem(np.eye(2), np.eye(2) / 4), weights), info)
