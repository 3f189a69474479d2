"""Costs of imagined trajectories: an energy to the goal, or a quadratic form.

`LatentCost`, for dynamics h and an energy E:

    J(u) = Σ_{s=1..t} γ^(s−1) · (w · E(h_s, g) + c · ‖u_s‖²) + W · E(h_t, g)

`QuadraticCost`, with e_s = h_s − g:

    J(u) = Σ_{s<t} (e_sᵀ S e_s + u_sᵀ R u_s) + e_tᵀ F e_t

In rotated coordinates h = Qz the weights QSQᵀ and QFQᵀ give every action sequence the same cost as S and F in z, so
optimal plans agree. Multiples of the identity are invariant under rotations: for them Q need not be known.

Candidates are rolled out in chunks of rows, so memory does not grow with their number unless gradients are needed.

Reference: Theorem 4 of "When Does LeJEPA Learn a World Model?".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError, check_argument, check_not_negative
from jepatlas.core.lazy import lazy_import
from jepatlas.core.linear_system import check_orthogonal
from jepatlas.planning.candidates import start_and_goal

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Distance = Callable[[Tensor, Tensor], Tensor]  # (..., d), (..., d) → (...)
    Score = Callable[
        [Tensor, Tensor, Tensor, Tensor], Tensor
    ]  # start (r, d), goal (r, d), h (r, t, d), u (r, t, a) → (r,)
else:
    torch = lazy_import("torch")

__all__ = [
    "CompiledDynamics",
    "LatentCost",
    "LatentCostConfig",
    "Quadratic",
    "QuadraticCost",
    "compiled",
    "rollout_costs",
]

CHUNK_NUMBERS = 2**20  # entries of a chunk of imagined latents: 4 MB in float32, which fits into a cache
ROUNDING = 1e-9


@dataclass(frozen=True)
class LatentCostConfig:
    stage: float = 0.0
    """w: weight of the energy after each action."""
    terminal: float = 1.0
    """W: weight of the energy at the end of the plan."""
    discount: float = 1.0
    """γ: discount factor per step, in (0, 1]."""
    action_penalty: float = 0.0
    """c: weight of the squared norm of the actions."""

    def __post_init__(self) -> None:
        for name in ("stage", "terminal", "action_penalty"):
            check_not_negative(name, getattr(self, name))
        check_argument("discount", self.discount, 0 < self.discount <= 1, "in (0, 1]")
        if not self.stage and not self.terminal:
            raise InputError("stage and terminal are both 0, so the cost ignores the goal. Set one of them above 0.")

    def build(self, dynamics: Dynamics, energy: Distance) -> LatentCost:
        return LatentCost(dynamics, energy, self)


@dataclass(frozen=True, eq=False)
class LatentCost:
    """A `Cost`: rollouts of `dynamics`, scored by `energy(h, goal)`."""

    dynamics: Dynamics
    energy: Distance
    config: LatentCostConfig = field(default_factory=LatentCostConfig)

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return rollout_costs(self.dynamics, self._score, info, actions)

    def _score(self, start: Tensor, goal: Tensor, h: Tensor, u: Tensor) -> Tensor:
        # A term of weight 0 is not computed: its energy may be infinite, and 0 · ∞ is NaN.
        config = self.config
        discounts = config.discount ** torch.arange(h.shape[1], dtype=h.dtype, device=h.device)
        total = h.new_zeros(len(h))
        if config.stage:
            energies = self.energy(h, goal[:, None])
            total = total + config.stage * (energies * discounts).sum(1)
            if config.terminal:
                total = total + config.terminal * energies[:, -1]
        else:
            total = total + config.terminal * self.energy(h[:, -1], goal)
        if config.action_penalty:
            total = total + config.action_penalty * (u.square().sum(-1) * discounts).sum(1)
        return total


@dataclass(frozen=True, eq=False)
class Quadratic:
    """The weights S (stages), R (actions) and F (final latent) of a quadratic cost."""

    state_dd: np.ndarray
    action_aa: np.ndarray
    final_dd: np.ndarray

    def __post_init__(self) -> None:
        for name in ("state_dd", "action_aa", "final_dd"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
            _check_semidefinite(name, getattr(self, name))
        if np.linalg.eigvalsh(self.action_aa)[0] <= 0:
            raise InputError("action_aa must be positive definite; a direction of zero cost has no unique optimum.")
        if self.state_dd.shape != self.final_dd.shape:
            raise InputError(
                "state_dd and final_dd must have the same shape, "
                f"but their shapes are {self.state_dd.shape} and {self.final_dd.shape}."
            )

    @classmethod
    def isotropic(cls, dim: int, action_dim: int, *, state: float, action: float, final: float) -> Quadratic:
        return cls(state * np.eye(dim), action * np.eye(action_dim), final * np.eye(dim))

    @property
    def invariant(self) -> bool:
        """Whether S and F are multiples of the identity, and so invariant under rotations."""
        for weight in (self.state_dd, self.final_dd):
            multiple = np.trace(weight) / len(weight) * np.eye(len(weight))
            if np.abs(weight - multiple).max() > ROUNDING * np.abs(weight).max():
                return False
        return True

    def conjugate(self, q_dd: np.ndarray) -> Quadratic:
        """The weights QSQᵀ, R, QFQᵀ, which give in h = Qz the same cost as these in z."""
        q = check_orthogonal(q_dd, len(self.state_dd))
        state = q @ self.state_dd @ q.T
        final = q @ self.final_dd @ q.T
        return Quadratic((state + state.T) / 2, self.action_aa, (final + final.T) / 2)


@dataclass(frozen=True, eq=False)
class QuadraticCost:
    """A `Cost` for any dynamics; LQR needs those of a `LinearSystem`."""

    dynamics: Dynamics
    weights: Quadratic

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return rollout_costs(self.dynamics, self._score, info, actions)

    def _score(self, start: Tensor, goal: Tensor, h: Tensor, u: Tensor) -> Tensor:
        state = torch.tensor(self.weights.state_dd, dtype=h.dtype, device=h.device)
        action = torch.tensor(self.weights.action_aa, dtype=h.dtype, device=h.device)
        final = torch.tensor(self.weights.final_dd, dtype=h.dtype, device=h.device)
        errors = torch.cat([start[:, None], h], dim=1) - goal[:, None]
        stages = _quadratic_form(errors[:, :-1], state).sum(1) + _quadratic_form(u, action).sum(1)
        return stages + _quadratic_form(errors[:, -1], final)


def _quadratic_form(x: Tensor, weight: Tensor) -> Tensor:
    return ((x @ weight) * x).sum(-1)


def _check_semidefinite(name: str, weight: np.ndarray) -> None:
    square = weight.ndim == 2 and weight.shape[0] == weight.shape[1] and weight.size > 0
    if not square or not np.isfinite(weight).all() or not np.allclose(weight, weight.T):
        raise InputError(f"{name} must be a finite symmetric matrix, but it is {weight!r}.")
    least = np.linalg.eigvalsh(weight)[0]
    if least < -ROUNDING * np.abs(weight).max():
        raise InputError(f"{name} must be positive semi-definite, but it has the eigenvalue {least:.3g}.")


def rollout_costs(
    dynamics: Dynamics, score: Score, info: Mapping[str, Tensor], actions: Tensor, chunk_numbers: int = CHUNK_NUMBERS
) -> Tensor:
    """Roll out all candidates and score them, (b, k, t, a) → (b, k), about `chunk_numbers` entries at a time."""
    start, goal = start_and_goal(info)
    if actions.ndim != 4 or len(actions) != len(start):
        raise InputError(
            f"actions must have shape (b, k, t, a) with b = {len(start)} starts, but it has {tuple(actions.shape)}."
        )
    b, k, t, a = actions.shape
    rows = max(1, chunk_numbers // (t * (start.shape[1] + a)))
    starts = start[:, None].expand(b, k, -1).reshape(b * k, -1).split(rows)
    goals = goal[:, None].expand(b, k, -1).reshape(b * k, -1).split(rows)
    sequences = actions.reshape(b * k, t, a).split(rows)
    scores = []
    for h, g, u in zip(starts, goals, sequences, strict=True):
        scores.append(score(h, g, _rollout(dynamics, h, u), u))
    return torch.cat(scores).view(b, k)


def _rollout(dynamics: Dynamics, start: Tensor, actions: Tensor) -> Tensor:
    h = dynamics.rollout(start, actions)
    expected = (*actions.shape[:2], start.shape[1])
    if h.shape != expected:
        raise InputError(
            f"Dynamics must return latents of shape {expected}, but returned {tuple(h.shape)}. "
            "Use the dynamics that were trained with this encoder."
        )
    return h


@dataclass(frozen=True, eq=False)
class CompiledDynamics:
    """`Dynamics` whose rollout goes through torch.compile."""

    original: Dynamics
    compiled_rollout: Callable[[Tensor, Tensor], Tensor]

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        return self.compiled_rollout(h, actions)


def compiled(dynamics: Dynamics, backend: str = "inductor") -> CompiledDynamics:
    """Dynamics with a compiled rollout; the first call for each horizon takes seconds, later ones are faster."""
    rollout = torch.compile(dynamics.rollout, backend=backend)
    return CompiledDynamics(dynamics, cast("Callable[[Tensor, Tensor], Tensor]", rollout))
