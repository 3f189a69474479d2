"""The linear–quadratic regulator (LQR): u_s = −K_s (h_s − g) − k_s.

With e = h − g the system is e' = A e + B u + c_g, where c_g = (A − I) g + c is the drift at the goal. The Riccati
recursion runs backwards from P = F, p = 0, with M = R + BᵀPB:

    K = M⁻¹ BᵀPA        k = M⁻¹ Bᵀ(P c_g + p)
    P ← S + AᵀPA − KᵀMK        p ← (A − BK)ᵀ(P c_g + p)

K and P do not depend on the goal. In h = Qz they become KQᵀ and QPQᵀ, and the actions are the same.

The infinite horizon uses the fixed point of the recursion. A goal with drift would cost without end, so the target is
the nearest state that some action holds, and among these actions the smallest:

    (g*, u*) = argmin ‖g* − g‖²   such that   (A − I) g* + B u* + c = 0

The cost is then that of h − g* and u − u*.

The plan is optimal if no bound is active. Otherwise actions are clamped and the feedback continues from the state that
results; the plan is then good, but not optimal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import evaluated_plan, start_and_goal
from jepatlas.planning.costs import Quadratic, QuadraticCost

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["LQR", "LQRConfig", "Regulator", "equilibrium_near", "finite_regulator", "infinite_regulator"]

TOLERANCE = 1e-9
UNWEIGHTED = "A direction that neither decays nor is weighted by state_dd is not controlled: give it a weight."


@dataclass(frozen=True)
class LQRConfig:
    kind: ClassVar[str] = "lqr"

    horizon: int = 16
    """Number of actions in a plan."""
    infinite: bool = False
    """Whether to use the infinite-horizon feedback. It steers to the equilibrium nearest to the goal."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)

    def build(self, box: ActionBox) -> LQR:
        return LQR(self, box)


@dataclass(frozen=True)
class LQR:
    """Needs a `QuadraticCost` of a `LinearSystem`; ignores the generator and the warm start."""

    config: LQRConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        if not isinstance(cost, QuadraticCost) or not isinstance(cost.dynamics, LinearSystem):
            raise InputError(
                f"LQR needs a QuadraticCost of a LinearSystem, but the cost is a {type(cost).__name__}. "
                "Use another planner, or fit a linear system first."
            )
        start, goal = start_and_goal(info)
        target = goal.double().cpu().numpy()
        if self.config.infinite:
            target, hold = equilibrium_near(cost.dynamics, target)
            regulator = infinite_regulator(cost.dynamics, cost.weights, self.config.horizon)
            offsets = -np.repeat(hold[:, None], self.config.horizon, axis=1)
        else:
            regulator = finite_regulator(cost.dynamics, cost.weights, self.config.horizon)
            offsets = regulator.offsets(target)
        with torch.no_grad():
            actions = _closed_loop_actions(regulator, start, target, offsets, self.box)
            return evaluated_plan(cost, info, actions)


def _closed_loop_actions(
    regulator: Regulator, start: Tensor, target: np.ndarray, offsets: np.ndarray, box: ActionBox
) -> Tensor:
    """Clamped feedback along the trajectory, (b, t, a)."""
    offsets_bta = torch.as_tensor(offsets)
    target_bd = torch.as_tensor(target)
    h = start.double().cpu()
    actions = []
    for s, gain in enumerate(torch.as_tensor(regulator.gains)):
        u = box.clamp(-(h - target_bd) @ gain.T - offsets_bta[:, s])
        h = regulator.system.rollout(h, u[:, None])[:, 0]
        actions.append(u)
    return torch.stack(actions, dim=1).to(start)


@dataclass(frozen=True, eq=False)
class Regulator:
    """Time-dependent feedback gains for any goal, and their values."""

    system: LinearSystem
    gains: np.ndarray  # K, (t, a, d)
    values: np.ndarray  # P, (t + 1, d, d): e_sᵀ P_s e_s is the cost-to-go where the goal has no drift
    inner: np.ndarray  # M⁻¹ Bᵀ, (t, a, d)

    def offsets(self, goal: np.ndarray) -> np.ndarray:
        """k for each goal and time, (b, d) → (b, t, a)."""
        a = self.system.a_dd
        drift = goal @ (a - np.eye(len(a))).T + self.system.c_d
        p = np.zeros_like(drift)
        offsets = []
        for s in reversed(range(len(self.gains))):
            ahead = drift @ self.values[s + 1] + p
            offsets.append(ahead @ self.inner[s].T)
            p = ahead @ (a - self.system.b_da @ self.gains[s])
        return np.stack(offsets[::-1], axis=1)


def finite_regulator(system: LinearSystem, weights: Quadratic, horizon: int) -> Regulator:
    """The optimal feedback for `horizon` actions, by the Riccati recursion."""
    _check_widths(system, weights)
    a, b = system.a_dd, system.b_da
    value = weights.final_dd
    gains, values, inner = [], [value], []
    for _ in range(horizon):
        m = weights.action_aa + b.T @ value @ b
        inner.append(np.linalg.solve(m, b.T))
        gains.append(inner[-1] @ value @ a)
        value = weights.state_dd + a.T @ value @ a - gains[-1].T @ m @ gains[-1]
        value = (value + value.T) / 2  # rounding errors would grow where A is unstable
        values.append(value)
    return Regulator(system, np.stack(gains[::-1]), np.stack(values[::-1]), np.stack(inner[::-1]))


def infinite_regulator(system: LinearSystem, weights: Quadratic, horizon: int) -> Regulator:
    """The stationary feedback of the infinite horizon, repeated for `horizon` actions; F is not used.

    P is the stabilising solution of the discrete algebraic Riccati equation.
    """
    import scipy.linalg  # noqa: PLC0415  (slow to import)

    _check_widths(system, weights)
    _check_stabilisable(system)
    a, b = system.a_dd, system.b_da
    try:
        value = scipy.linalg.solve_discrete_are(a, b, weights.state_dd, weights.action_aa)
    except np.linalg.LinAlgError as error:
        raise InputError(f"The Riccati equation has no stabilising solution ({error}). {UNWEIGHTED}") from error
    inner = np.linalg.solve(weights.action_aa + b.T @ value @ b, b.T)
    gain = inner @ value @ a
    if not np.abs(np.linalg.eigvals(a - b @ gain)).max() < 1:
        raise InputError(f"The optimal feedback does not stabilise the system. {UNWEIGHTED}")
    return Regulator(system, np.stack([gain] * horizon), np.stack([value] * (horizon + 1)), np.stack([inner] * horizon))


def equilibrium_near(system: LinearSystem, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The equilibrium g* nearest to each goal and the action u* that holds it, (b, d) → (b, d), (b, a)."""
    import scipy.linalg  # noqa: PLC0415  (slow to import)

    d = len(system.a_dd)
    still = np.concatenate([system.a_dd - np.eye(d), system.b_da], axis=1)
    particular = np.linalg.lstsq(still, -system.c_d, rcond=TOLERANCE)[0]  # minimum norm: orthogonal to the null space
    if np.abs(still @ particular + system.c_d).max() > 1e-6 * (1 + np.abs(system.c_d).max()):
        raise InputError(
            "The system has no equilibrium: no action holds any state. Use a finite horizon (infinite=False)."
        )
    free = scipy.linalg.null_space(still, rcond=TOLERANCE)
    steps = np.linalg.lstsq(free[:d], (goal - particular[:d]).T, rcond=TOLERANCE)[0]
    target, hold = np.split((particular[:, None] + free @ steps).T, [d], axis=1)
    return target, hold


def _check_widths(system: LinearSystem, weights: Quadratic) -> None:
    d, a = system.b_da.shape
    if weights.state_dd.shape != (d, d) or weights.action_aa.shape != (a, a):
        raise InputError(
            f"The system has {d} latent and {a} action dimensions, but the weights are for "
            f"{len(weights.state_dd)} and {len(weights.action_aa)}."
        )


def _check_stabilisable(system: LinearSystem) -> None:
    """Hautus test: [A − λI, B] must have rank d for every eigenvalue λ of A with |λ| ≥ 1."""
    a, d = system.a_dd, len(system.a_dd)
    for value in np.linalg.eigvals(a):
        pencil = np.concatenate([a - value * np.eye(d), system.b_da], axis=1)
        singular = np.linalg.svd(pencil, compute_uv=False)
        if abs(value) >= 1 - TOLERANCE and singular[-1] <= TOLERANCE * max(1.0, singular[0]):
            raise InputError(
                f"The system is not stabilisable: its mode with |λ| = {abs(value):.4g} does not decay, and no action "
                "affects it. Use a finite horizon, or remove this direction from the latent."
            )
