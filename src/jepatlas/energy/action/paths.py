"""Least-action paths: the action of a path, its Euler–Lagrange residual, and its minimisation by gradient descent.

    S = Σ_k L_k,    L_k = L((p_k + p_{k+1})/2, p_{k+1} − p_k)        the midpoint rule

L is homogeneous of degree one, so S does not depend on how time is assigned to the points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # submodules load on first access
import torch
from torch import Tensor

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_check import require_effort

__all__ = [
    "Path",
    "equal_steps",
    "euler_lagrange_residuals",
    "minimal_paths",
    "path_action",
    "path_residual",
    "step_efforts",
]

FEWEST_POINTS = 5  # of a path with a residual
FEWEST_STEPS = 4
ROUNDS = 2
FORBIDDEN = 1e6  # replaces +∞ in the line search; normalised objectives start at 1


@dataclass(frozen=True)
class Path:
    """A path from its first to its last point. If no path exists, `points` is empty and `action` is +∞."""

    points: np.ndarray  # (m, d)
    action: float
    residual: float  # of the Euler–Lagrange equation, see `path_residual`; NaN if no path exists

    @property
    def reached(self) -> bool:
        """Whether a path of finite action was found."""
        return bool(np.isfinite(self.action))


def step_efforts(points: Tensor, effort: Effort) -> Tensor:
    """The effort of each step, (..., m, d) → (..., m − 1)."""
    here = points[..., :-1, :]
    there = points[..., 1:, :]
    return effort((here + there) / 2, there - here)


def path_action(points: np.ndarray, effort: Effort) -> float:
    """The action of one path (m, d); 0 for a single point.

    >>> from jepatlas.energy.action.effort import Euclidean
    >>> path_action(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]]), Euclidean())
    6.0
    """
    with torch.no_grad():
        return float(step_efforts(torch.as_tensor(np.asarray(points, dtype=np.float64)), effort).sum())


def equal_steps(points: np.ndarray, steps: int) -> np.ndarray:
    """Resample a polygonal path into steps of equal length, (m, d) → (steps + 1, d)."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    at = np.r_[0.0, np.cumsum(lengths)]
    wanted = np.linspace(0, at[-1], steps + 1)
    distinct = np.r_[True, lengths > 0]  # np.interp needs increasing abscissae
    return np.stack([np.interp(wanted, at[distinct], column[distinct]) for column in points.T], axis=1)


def euler_lagrange_residuals(points: np.ndarray, effort: Effort) -> np.ndarray:
    """r·dt = d(∂L/∂v) − ∂L/∂x·dt at the points with two neighbours on each side, (m, d) → (m − 4, d).

    Derivatives are central differences at the points of the path. They are not the gradient of the discretised action,
    which vanishes at its minimum however coarse the path is; so the residual also detects too few points.
    """
    path = torch.as_tensor(np.asarray(points, dtype=np.float64))
    x = path[1:-1].clone().requires_grad_()
    v = ((path[2:] - path[:-2]) / 2).requires_grad_()
    force, momentum = torch.autograd.grad(effort(x, v).sum(), (x, v), allow_unused=True)
    change = (momentum[2:] - momentum[:-2]) / 2
    return (change if force is None else change - force[1:-1]).numpy()


def path_residual(points: np.ndarray, effort: Effort) -> float:
    """The normalised Euler–Lagrange residual of a path (m, d): (length / action) · ∫ ‖d/dt ∂L/∂v − ∂L/∂x‖ dt.

    The integral does not depend on the parametrisation, and the factor makes it dimensionless. For the Euclidean effort
    it is the total turning angle of the path. It is 0 for a path of length 0 and NaN for fewer than five points.
    """
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    if length == 0:
        return 0.0
    if len(points) < FEWEST_POINTS:
        return float("nan")
    total = np.linalg.norm(euler_lagrange_residuals(points, effort), axis=1).sum()
    return float(total * length / path_action(points, effort))


def minimal_paths(
    start: np.ndarray,
    goal: np.ndarray,
    effort: Effort,
    *,
    steps: int = 32,
    initial: np.ndarray | None = None,
    iterations: int = 300,
) -> tuple[Path, ...]:
    """Least-action paths from each start (b, d) to its goal (b, d), by L-BFGS on their interior points.

        minimise  m · Σ_k L_k²  ≥  (Σ_k L_k)²        with equality if all steps have equal effort

    The action itself does not change when points slide along a path, so they would cluster. The sum of squares has the
    same minimisers and spaces the points evenly; the path is also resampled to equal steps between rounds.

    Paths start from straight lines or from `initial` (b, steps + 1, d). The minimum is local: `search_path` supplies
    a global initial path. The action is +∞ if the initial path has infinite action, since there is no gradient.

    >>> from jepatlas.energy.action.effort import Euclidean
    >>> round(minimal_paths(np.zeros((1, 2)), np.array([[3.0, 4.0]]), Euclidean())[0].action, 6)
    5.0
    """
    start, goal = _check_ends(start, goal)
    if steps < FEWEST_STEPS:
        raise InputError(f"steps must be at least {FEWEST_STEPS}, but {steps} was given.")
    require_effort(effort, np.concatenate([start, goal]))
    if initial is None:
        share = np.linspace(0, 1, steps + 1)[None, :, None]
        paths = (1 - share) * start[:, None] + share * goal[:, None]
    else:
        paths = _check_initial(initial, start, goal)
    for _ in range(ROUNDS):
        paths = _descend(np.stack([equal_steps(path, steps) for path in paths]), effort, iterations)
    return tuple(_as_path(points, effort) for points in paths)


def _as_path(points: np.ndarray, effort: Effort) -> Path:
    if (points == points[0]).all():
        return Path(points[:1], 0.0, 0.0)
    action = path_action(points, effort)
    if not np.isfinite(action):
        return Path(points[:0], np.inf, np.nan)
    return Path(points, action, path_residual(points, effort))


def _descend(paths: np.ndarray, effort: Effort, iterations: int) -> np.ndarray:
    """Minimise all paths at once. Each objective is relative to its initial value; each path keeps its best iterate.

    The unknowns are u with p = p⁰ + R⁻¹u, where RᵀR is the matrix of Σ‖p_{k+1} − p_k‖². In the points themselves long
    bends are ill-conditioned, the more so the more points there are; in u the Euclidean effort is isotropic.
    """
    inner = paths[:, 1:-1]
    preconditioner = torch.as_tensor(_inverse_factor(inner.shape[1]))
    units = _sum_of_squares(torch.as_tensor(paths), effort).detach()
    units = torch.where(torch.isfinite(units) & (units > 0), units, 1.0)
    best = inner.copy()
    least = np.full(len(paths), np.inf)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        unknowns = torch.as_tensor(flat.reshape(inner.shape)).requires_grad_()
        points = torch.as_tensor(inner) + preconditioner @ unknowns
        first, last = torch.as_tensor(paths[:, :1]), torch.as_tensor(paths[:, -1:])
        each = _sum_of_squares(torch.cat([first, points, last], 1), effort) / units
        finite = torch.isfinite(each)
        (gradient,) = torch.autograd.grad(torch.where(finite, each, 0.0).sum(), unknowns)
        values = torch.where(finite, each, FORBIDDEN).detach().numpy()
        better = values < least
        best[better] = points.detach().numpy()[better]
        least[better] = values[better]
        return float(values.sum()), gradient.nan_to_num(0.0, 0.0, 0.0).numpy().ravel()

    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    scipy.optimize.minimize(value, np.zeros(inner.size), jac=True, method="L-BFGS-B", options=options)
    return np.concatenate([paths[:, :1], best, paths[:, -1:]], 1)


def _inverse_factor(count: int) -> np.ndarray:
    """R⁻¹ for `count` interior points."""
    second_difference = 2 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)
    return np.linalg.inv(np.linalg.cholesky(second_difference).T)


def _sum_of_squares(paths: Tensor, effort: Effort) -> Tensor:
    return (paths.shape[1] - 1) * step_efforts(paths, effort).square().sum(-1)


def _check_ends(start: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    start, goal = (np.asarray(end, dtype=np.float64) for end in (start, goal))
    if start.shape != goal.shape or start.ndim != 2 or not start.size:
        raise InputError(
            f"start and goal must have the same shape (b, d), but {start.shape} and {goal.shape} were given."
        )
    check_finite("start", start)
    check_finite("goal", goal)
    return start, goal


def _check_initial(initial: np.ndarray, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
    paths = np.asarray(initial, dtype=np.float64)
    if paths.ndim != 3 or not (np.array_equal(paths[:, 0], start) and np.array_equal(paths[:, -1], goal)):
        raise InputError(
            f"initial must hold paths (b, m, d) from start to goal, but the array of shape {paths.shape} does not."
        )
    return paths
