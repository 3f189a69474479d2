"""The Ornstein–Uhlenbeck world as one with actions: its noise is what is done.

    z' = ρ z + √(1−ρ²) u        A = ρI,  B = √(1−ρ²) I

LeJEPA learns from pairs, without actions; here those are known, so that dynamics can be fitted and plans carried out.
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

__all__ = ["Loop", "See", "Walked", "eyes", "stepped", "true_system", "walked"]

See = Callable[[np.ndarray], np.ndarray]
"""From states to latents, (b, n) → (b, d)."""
HORIZON = 20  # actions of a closed loop


@dataclass(frozen=True)
class Walked:
    """Steps, and what they are in the latent."""

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


def walked(world: LatentWorld, see: See, rows: int, rng: np.random.Generator) -> Walked:
    """Single steps from states of the law, as it moves by itself."""
    z, u = rng.standard_normal((2, rows, world.dim))
    z_next = stepped(true_system(world), z, u)
    return Walked(z, u, z_next, see(z), see(z_next))


def stepped(system: LinearSystem, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    return z @ system.a_dd.T + u @ system.b_da.T


def eyes(world: LatentWorld, objective: PairObjective | None) -> See:
    """Through the world's own mixing and a trained encoder; without one, what is observed is the latent."""

    @torch.no_grad()
    def see(z: np.ndarray) -> np.ndarray:
        x = world.observe(torch.as_tensor(z, dtype=torch.float32))
        return (x if objective is None else objective.encode(x)).double().numpy()

    return see


@dataclass(frozen=True)
class Loop:
    """Feedback that is optimal in the latent, closed through the world; without dynamics nothing is done."""

    true: LinearSystem
    see: See
    system: LinearSystem | None
    inside: Quadratic
    limit: float = np.inf

    def __call__(self, starts: np.ndarray, goals: np.ndarray, weights: Quadratic) -> tuple[np.ndarray, float]:
        """What each task costs in truth, (b,), and the largest action of all."""
        act, cost, z, largest = self._feedback(goals), np.zeros(len(starts)), starts, 0.0
        for s in range(HORIZON):
            u = act(z, s).clip(-self.limit, self.limit)
            cost = cost + _form(z - goals, weights.state_dd) + _form(u, weights.action_aa)
            z, largest = stepped(self.true, z, u), max(largest, float(np.abs(u).max()))
        return cost + _form(z - goals, weights.final_dd), largest

    def _feedback(self, goals: np.ndarray) -> Callable[[np.ndarray, int], np.ndarray]:
        if self.system is None:
            return lambda z, s: np.zeros_like(z)
        regulator = finite_regulator(self.system, self.inside, HORIZON)
        aims = self.see(goals)
        offsets = regulator.offsets(aims)
        return lambda z, s: -(self.see(z) - aims) @ regulator.gains[s].T - offsets[:, s]


def _form(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return ((rows @ weight) * rows).sum(1)
