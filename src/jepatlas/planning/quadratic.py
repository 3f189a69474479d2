"""Quadratic costs, and what becomes of them in rotated coordinates.

    J = Σ_{s<t} (e_sᵀ S e_s + u_sᵀ R u_s) + e_tᵀ F e_t,      e_s = h_s − g

In h = Qz the weights QSQᵀ and QFQᵀ give every sequence of actions the cost it has in z: so whatever is optimal in the
one is in the other. Multiples of the identity are their own conjugates: with these a planner need not know Q.

Reference: Theorem 4 of "When Does LeJEPA Learn a World Model?".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import check_orthogonal
from jepatlas.planning.rollout_costs import rolled_costs

__all__ = ["Quadratic", "QuadraticCost"]

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The weights: of latents on the way, of actions, and of the last latent."""

    state_dd: np.ndarray
    action_aa: np.ndarray
    final_dd: np.ndarray

    def __post_init__(self) -> None:
        for name in ("state_dd", "action_aa", "final_dd"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
            _check_weight(name, getattr(self, name))
        if np.linalg.eigvalsh(self.action_aa)[0] <= 0:
            raise InputError("action_aa must be positive definite: an action that costs nothing has no optimum.")
        if self.state_dd.shape != self.final_dd.shape:
            shapes = f"{self.state_dd.shape} and {self.final_dd.shape}"
            raise InputError(f"state_dd and final_dd weigh the same latents, but have shapes {shapes}.")

    @classmethod
    def isotropic(cls, dim: int, action_dim: int, *, state: float, action: float, final: float) -> Quadratic:
        return cls(state * np.eye(dim), action * np.eye(action_dim), final * np.eye(dim))

    @property
    def invariant(self) -> bool:
        """Whether every rotation leaves the weights of latents as they are."""
        parts = (self.state_dd, self.final_dd)
        return all(np.abs(w - np.trace(w) / len(w) * np.eye(len(w))).max() <= ROUNDING * np.abs(w).max() for w in parts)

    def conjugate(self, q_dd: np.ndarray) -> Quadratic:
        """The weights that give in h = Qz what these give in z."""
        q = check_orthogonal(q_dd, len(self.state_dd))
        state, final = ((w + w.T) / 2 for w in (q @ self.state_dd @ q.T, q @ self.final_dd @ q.T))
        return Quadratic(state, self.action_aa, final)


@dataclass(frozen=True, eq=False)
class QuadraticCost:
    """A `Cost`, through any dynamics; LQR takes those of a `LinearSystem`."""

    dynamics: Dynamics
    weights: Quadratic

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return rolled_costs(self.dynamics, self._score, info, actions)

    def _score(self, start: Tensor, goal: Tensor, h: Tensor, u: Tensor) -> Tensor:
        parts = (self.weights.state_dd, self.weights.action_aa, self.weights.final_dd)
        state, action, final = (torch.tensor(part, dtype=h.dtype, device=h.device) for part in parts)
        errors = torch.cat([start[:, None], h], dim=1) - goal[:, None]
        return _form(errors[:, :-1], state).sum(1) + _form(u, action).sum(1) + _form(errors[:, -1], final)


def _form(x: Tensor, weight: Tensor) -> Tensor:
    return ((x @ weight) * x).sum(-1)


def _check_weight(name: str, weight: np.ndarray) -> None:
    square = weight.ndim == 2 and weight.shape[0] == weight.shape[1] and weight.size > 0
    if not square or not np.isfinite(weight).all() or not np.allclose(weight, weight.T):
        raise InputError(f"{name} must be a finite symmetric matrix, but it is {weight!r}.")
    if np.linalg.eigvalsh(weight)[0] < -ROUNDING * np.abs(weight).max():
        raise InputError(f"{name} must be positive semi-definite, but has an eigenvalue below 0.")
