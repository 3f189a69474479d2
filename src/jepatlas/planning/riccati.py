"""The linear–quadratic regulator: u_s = −K_s (h_s − g) − k_s, by the Riccati recursion or its fixed point.

In e = h − g the world is e' = A e + B u + c_g, with the drift c_g = (A − I) g + c: what happens at the goal if nothing
is done. Backwards from P = F, p = 0, and with M = R + BᵀPB:

    K = M⁻¹ BᵀPA        k = M⁻¹ Bᵀ(P c_g + p)
    P ← S + AᵀPA − KᵀMK        p ← (A − BK)ᵀ(P c_g + p)

K and P do not know the goal. In h = Qz they are KQᵀ and QPQᵀ, and the actions are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem
from jepatlas.planning.quadratic import Quadratic

__all__ = ["Regulator", "drift_at", "finite_regulator", "infinite_regulator"]

TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Regulator:
    """What to do at each time, for any goal, and what that costs."""

    system: LinearSystem
    gains: np.ndarray  # K, (t, a, d)
    values: np.ndarray  # P, (t + 1, d, d): e_sᵀ P_s e_s is the cost to go where the goal has no drift
    inner: np.ndarray  # M⁻¹ Bᵀ, (t, a, d)

    def offsets(self, goal: np.ndarray) -> np.ndarray:
        """k for each goal and time, (b, d) → (b, t, a)."""
        drift = drift_at(self.system, goal)
        p, found = np.zeros_like(drift), []
        for s in reversed(range(len(self.gains))):
            ahead = drift @ self.values[s + 1] + p
            found.append(ahead @ self.inner[s].T)
            p = ahead @ (self.system.a_dd - self.system.b_da @ self.gains[s])
        return np.stack(found[::-1], axis=1)


def finite_regulator(system: LinearSystem, weights: Quadratic, horizon: int) -> Regulator:
    """Optimal for so many actions, then the final weight."""
    _check_widths(system, weights)
    a, b = system.a_dd, system.b_da
    value, gains, values, inner = weights.final_dd, [], [weights.final_dd], []
    for _ in range(horizon):
        m = weights.action_aa + b.T @ value @ b
        inner.append(np.linalg.solve(m, b.T))
        gains.append(inner[-1] @ value @ a)
        value = weights.state_dd + a.T @ value @ a - gains[-1].T @ m @ gains[-1]
        value = (value + value.T) / 2  # rounding would grow where A is unstable
        values.append(value)
    return Regulator(system, *(np.stack(part[::-1]) for part in (gains, values, inner)))


def infinite_regulator(system: LinearSystem, weights: Quadratic, horizon: int) -> Regulator:
    """The one gain that is optimal for ever, for the first so many actions; the final weight plays no part.

    P is the stabilising solution of the discrete algebraic Riccati equation.
    """
    _check_widths(system, weights)
    _check_stabilisable(system)
    a, b = system.a_dd, system.b_da
    try:
        value = scipy.linalg.solve_discrete_are(a, b, weights.state_dd, weights.action_aa)
    except np.linalg.LinAlgError as error:
        raise InputError(f"The Riccati equation has no stabilising solution ({error}). {_UNSEEN}") from error
    inner = np.linalg.solve(weights.action_aa + b.T @ value @ b, b.T)
    gain = inner @ value @ a
    if not np.abs(np.linalg.eigvals(a - b @ gain)).max() < 1:
        raise InputError(f"The optimal feedback does not bring every latent to rest. {_UNSEEN}")
    return Regulator(
        system, *(np.stack([part] * n) for part, n in ((gain, horizon), (value, horizon + 1), (inner, horizon)))
    )


_UNSEEN = "A direction that neither decays nor is weighed by state_dd is left to itself: give it a weight."


def drift_at(system: LinearSystem, goal: np.ndarray) -> np.ndarray:
    """(A − I) g + c, (b, d): zero where one can stay at the goal without acting."""
    return goal @ (system.a_dd - np.eye(len(system.a_dd))).T + system.c_d


def _check_widths(system: LinearSystem, weights: Quadratic) -> None:
    d, a = system.b_da.shape
    if weights.state_dd.shape != (d, d) or weights.action_aa.shape != (a, a):
        raise InputError(
            f"The system has {d} latent and {a} action dimensions, but the weights are for "
            f"{len(weights.state_dd)} and {len(weights.action_aa)}."
        )


def _check_stabilisable(system: LinearSystem) -> None:
    """Hautus: every λ of A with |λ| ≥ 1 needs rank [A − λI, B] = d."""
    a, d = system.a_dd, len(system.a_dd)
    for value in np.linalg.eigvals(a):
        pencil = np.concatenate([a - value * np.eye(d), system.b_da], axis=1)
        singular = np.linalg.svd(pencil, compute_uv=False)
        if abs(value) >= 1 - TOLERANCE and singular[-1] <= TOLERANCE * max(1.0, singular[0]):
            raise InputError(
                f"No feedback stabilises this system: its mode with |λ| = {abs(value):.4g} does not decay, and no "
                "action moves it. Plan with a finite horizon, or leave this direction out of the latent."
            )
