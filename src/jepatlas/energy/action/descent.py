"""Minimal paths by gradient on their interior points, many at once.

    minimise  m · Σ_k L_k²  ≥  (Σ_k L_k)²        L_k the effort of step k, equal where all steps take the same effort

The action itself does not change when points slide along the path, and they would clump. The sum of squares has the
same minimal paths and spaces the points evenly; between two rounds they are moved to equal steps besides.

Long bends are stiff in the points themselves: each moves only as its neighbours do, and descent takes longer the more
points there are. So it is in coordinates u, p = p⁰ + R⁻¹u with RᵀR the matrix of Σ‖p_{k+1} − p_k‖², in which the
Euclidean effort is as steep in all directions.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are asked for
import torch
from torch import Tensor

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.effort_check import require_effort
from jepatlas.energy.action.euler_lagrange import path_residual
from jepatlas.energy.action.path import Path, equal_steps, path_action, step_efforts

__all__ = ["minimal_paths"]

FEWEST_STEPS = 4
ROUNDS = 2
FORBIDDEN = 1e6  # stands for +∞, so that a line search turns back: paths begin at 1


def minimal_paths(
    start: np.ndarray,
    goal: np.ndarray,
    effort: Effort,
    *,
    steps: int = 32,
    initial: np.ndarray | None = None,
    iterations: int = 300,
) -> tuple[Path, ...]:
    """From each start to its goal, (b, d) both; from straight lines, or from the paths (b, steps + 1, d) given.

    A minimum near that is found, which may not be the least of all: a graph search gives a start that knows the world.
    The action is +∞ where the initial path is forbidden, for there is no gradient to leave by.

    >>> from jepatlas.energy.action.conformal import Euclidean
    >>> round(minimal_paths(np.zeros((1, 2)), np.array([[3.0, 4.0]]), Euclidean())[0].action, 6)
    5.0
    """
    start, goal = _ends(start, goal)
    if steps < FEWEST_STEPS:
        raise InputError(f"A path needs at least {FEWEST_STEPS} steps for its residual, but {steps} were asked for.")
    require_effort(effort, np.concatenate([start, goal]))
    share = np.linspace(0, 1, steps + 1)[None, :, None]
    paths = (1 - share) * start[:, None] + share * goal[:, None] if initial is None else _initial(initial, start, goal)
    for _ in range(ROUNDS):
        paths = _descend(np.stack([equal_steps(path, steps) for path in paths]), effort, iterations)
    return tuple(_path(points, effort) for points in paths)


def _path(points: np.ndarray, effort: Effort) -> Path:
    if (points == points[0]).all():
        return Path(points[:1], 0.0, 0.0)
    action = path_action(points, effort)
    if not np.isfinite(action):
        return Path(points[:0], np.inf, np.nan)
    return Path(points, action, path_residual(points, effort))


def _descend(paths: np.ndarray, effort: Effort, iterations: int) -> np.ndarray:
    """One descent for all paths; each is measured by what it was in the beginning, and keeps the best it has been."""
    inner = paths[:, 1:-1]
    bends = torch.as_tensor(_bends(inner.shape[1]))
    units = _squares(torch.as_tensor(paths), effort).detach()
    units = torch.where(torch.isfinite(units) & (units > 0), units, 1.0)
    best, least = inner.copy(), np.full(len(paths), np.inf)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        moved = torch.as_tensor(flat.reshape(inner.shape)).requires_grad_()
        points = torch.as_tensor(inner) + bends @ moved
        ends = torch.as_tensor(paths[:, :1]), torch.as_tensor(paths[:, -1:])
        each = _squares(torch.cat([ends[0], points, ends[1]], 1), effort) / units
        finite = torch.isfinite(each)
        (slope,) = torch.autograd.grad(torch.where(finite, each, 0.0).sum(), moved)
        values = torch.where(finite, each, FORBIDDEN).detach().numpy()
        better = values < least
        best[better], least[better] = points.detach().numpy()[better], values[better]
        return float(values.sum()), slope.nan_to_num(0.0, 0.0, 0.0).numpy().ravel()

    options = {"maxiter": iterations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    scipy.optimize.minimize(value, np.zeros(inner.size), jac=True, method="L-BFGS-B", options=options)
    return np.concatenate([paths[:, :1], best, paths[:, -1:]], 1)


def _bends(count: int) -> np.ndarray:
    """R⁻¹ for so many interior points."""
    steps = 2 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)
    return np.linalg.inv(np.linalg.cholesky(steps).T)


def _squares(paths: Tensor, effort: Effort) -> Tensor:
    return (paths.shape[1] - 1) * step_efforts(paths, effort).square().sum(-1)


def _ends(start: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    start, goal = (np.asarray(end, dtype=np.float64) for end in (start, goal))
    if start.shape != goal.shape or start.ndim != 2 or not start.size:
        raise InputError(
            f"Starts and goals must be rows, (b, d), and equally many, but {start.shape} and {goal.shape} were given."
        )
    check_finite("start", start)
    check_finite("goal", goal)
    return start, goal


def _initial(initial: np.ndarray, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
    paths = np.asarray(initial, dtype=np.float64)
    if paths.ndim != 3 or not (np.array_equal(paths[:, 0], start) and np.array_equal(paths[:, -1], goal)):
        raise InputError(
            f"Initial paths (b, m, d) must lead from the starts to the goals; shape {paths.shape} was given."
        )
    return paths
