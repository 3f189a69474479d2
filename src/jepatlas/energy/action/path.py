"""A path through points, and its action by the midpoint rule.

    S = Σ_k L((p_k + p_{k+1})/2, p_{k+1} − p_k)

L is homogeneous of degree one, so no time is needed, and none of it matters. A path of one point has action 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jepatlas.energy.action.effort import Effort

__all__ = ["Path", "equal_steps", "path_action", "step_efforts"]


@dataclass(frozen=True)
class Path:
    """The way that was found from the first point to the last; no points, at action +∞, where there is none."""

    points: np.ndarray  # (m, d)
    action: float
    residual: float  # of the Euler–Lagrange equation, see there; NaN where there is no way

    @property
    def reached(self) -> bool:
        return bool(np.isfinite(self.action))


def step_efforts(points: Tensor, effort: Effort) -> Tensor:
    """The effort of each step, (..., m, d) → (..., m − 1)."""
    here, there = points[..., :-1, :], points[..., 1:, :]
    return effort((here + there) / 2, there - here)


def path_action(points: np.ndarray, effort: Effort) -> float:
    """The action of one path (m, d).

    >>> from jepatlas.energy.action.conformal import Euclidean
    >>> path_action(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]]), Euclidean())
    6.0
    """
    with torch.no_grad():
        return float(step_efforts(torch.as_tensor(np.asarray(points, dtype=np.float64)), effort).sum())


def equal_steps(points: np.ndarray, steps: int) -> np.ndarray:
    """The same polygon, walked in so many steps of equal length, (steps + 1, d)."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    at = np.r_[0.0, np.cumsum(lengths)]
    wanted = np.linspace(0, at[-1], steps + 1)
    moved = np.r_[True, lengths > 0]  # a point twice in a row has no length to be found at
    return np.stack([np.interp(wanted, at[moved], column[moved]) for column in points.T], axis=1)
