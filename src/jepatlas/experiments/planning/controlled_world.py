"""The Ornstein–Uhlenbeck world with its noise as the action.

    z' = ρ z + √(1−ρ²) u        A = ρI,  B = √(1−ρ²) I

LeJEPA learns from pairs without actions; here actions are known, so dynamics can be fitted and plans executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from jepatlas.core.linear_system import LinearSystem, fit_linear_system
from jepatlas.objectives import PairObjective
from jepatlas.planning import Quadratic, finite_regulator
from jepatlas.worlds import LatentWorld

__all__ = ["Encode", "LatentSteps", "Loop", "sample_steps", "step_system", "true_system", "world_encoder"]

Encode = Callable[[np.ndarray], np.ndarray]
"""Maps states to latents, (b, n) → (b, d)."""
HORIZON = 20  # actions of a closed loop


@dataclass(frozen=True)
class LatentSteps:
    """Single steps in states and in latents."""

    z: np.ndarray
    u: np.ndarray
    z_next: np.ndarray
    h: np.ndarray
    h_next: np.ndarray

    @property
    def system(self) -> LinearSystem:
        """The dynamics of the latent, by least squares."""
        return fit_linear_system(self.h, self.u, self.h_next)


def true_system(world: LatentWorld) -> LinearSystem:
    """
    >>> true_system(LatentWorld()).a_dd.tolist()
    [[0.95, 0.0], [0.0, 0.95]]
    """
    rates = np.array(world.correlation)
    return LinearSystem(np.diag(rates), np.diag(np.sqrt(1 - rates**2)))


def sample_steps(world: LatentWorld, encode: Encode, rows: int, rng: np.random.Generator) -> LatentSteps:
    """Single steps of the law from its stationary distribution."""
    z, u = rng.standard_normal((2, rows, world.dim))
    z_next = step_system(true_system(world), z, u)
    return LatentSteps(z, u, z_next, encode(z), encode(z_next))


def step_system(system: LinearSystem, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    return z @ system.a_dd.T + u @ system.b_da.T


def world_encoder(world: LatentWorld, objective: PairObjective | None) -> Encode:
    """The mixing of the world followed by a trained encoder; without one the observation is the latent."""

    @torch.no_grad()
    def encode(z: np.ndarray) -> np.ndarray:
        x = world.observe(torch.as_tensor(z, dtype=torch.float32))
        return (x if objective is None else objective.encode(x)).double().numpy()

    return encode


@dataclass(frozen=True)
class Loop:
    """Closed loop of the world with the feedback that is optimal in the latent; without dynamics no action."""

    true: LinearSystem
    encode: Encode
    system: LinearSystem | None
    inside: Quadratic
    limit: float = np.inf

    def __call__(self, starts: np.ndarray, goals: np.ndarray, weights: Quadratic) -> tuple[np.ndarray, float]:
        """True cost of each task, (b,), and the largest action."""
        act = self._feedback(goals)
        cost = np.zeros(len(starts))
        z = starts
        largest = 0.0
        for step in range(HORIZON):
            u = act(z, step).clip(-self.limit, self.limit)
            cost = cost + _quadratic_form(z - goals, weights.state_dd) + _quadratic_form(u, weights.action_aa)
            z = step_system(self.true, z, u)
            largest = max(largest, float(np.abs(u).max()))
        return cost + _quadratic_form(z - goals, weights.final_dd), largest

    def _feedback(self, goals: np.ndarray) -> Callable[[np.ndarray, int], np.ndarray]:
        if self.system is None:
            return lambda z, step: np.zeros_like(z)
        regulator = finite_regulator(self.system, self.inside, HORIZON)
        aims = self.encode(goals)
        offsets = regulator.offsets(aims)
        return lambda z, step: -(self.encode(z) - aims) @ regulator.gains[step].T - offsets[:, step]


def _quadratic_form(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return ((rows @ weight) * rows).sum(1)
