"""Is it a least-action path? The residual of the Euler–Lagrange equation along what is returned.

    r(t) = d/dt ∂L/∂v − ∂L/∂x        residual = (length / action) · ∫ ‖r‖ dt

Momentum ∂L/∂v does not depend on speed and ∂L/∂x is proportional to it, so ∫‖r‖dt is the same for every clock; divided
by the mean effort per length it has no units. Of a curve under the Euclidean effort it is the angle it turns through.

Derivatives are central differences at the path's own points. They are not those of the action that was minimised (which
are about 0 in its discrete minimum, however coarse): they also see too few points.
"""

from __future__ import annotations

import numpy as np
import torch

from jepatlas.energy.action.effort import Effort
from jepatlas.energy.action.path import path_action

__all__ = ["FEWEST_POINTS", "euler_lagrange", "path_residual"]

FEWEST_POINTS = 5


def euler_lagrange(points: np.ndarray, effort: Effort) -> np.ndarray:
    """r·dt at the points that have two neighbours on each side, (m − 4, d)."""
    path = torch.as_tensor(np.asarray(points, dtype=np.float64))
    x = path[1:-1].clone().requires_grad_()
    v = ((path[2:] - path[:-2]) / 2).requires_grad_()
    force, momentum = torch.autograd.grad(effort(x, v).sum(), (x, v), allow_unused=True)
    change = (momentum[2:] - momentum[:-2]) / 2
    return (change if force is None else change - force[1:-1]).numpy()


def path_residual(points: np.ndarray, effort: Effort) -> float:
    """The residual of a path (m, d); 0 of one that stays, NaN of one that has too few points to tell."""
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    if length == 0:
        return 0.0
    if len(points) < FEWEST_POINTS:
        return float("nan")
    total = np.linalg.norm(euler_lagrange(points, effort), axis=1).sum()
    return float(total * length / path_action(points, effort))
