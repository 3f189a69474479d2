"""Targets at rest: where an infinite sum has an optimum.

    (g*, u*) = argmin ‖g* − g‖²   such that   (A − I) g* + B u* + c = 0

A goal that drifts would have to be held at a cost, for ever. So the target is the state nearest to it that some action
holds; of all such actions the smallest. Where the world rests at the goal itself, g* = g and u* = 0. What is paid for
are h − g* and u − u*.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem

__all__ = ["rest_near"]

TOLERANCE = 1e-9


def rest_near(system: LinearSystem, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The target and the action that holds it, (b, d) → (b, d), (b, a)."""
    d = len(system.a_dd)
    still = np.concatenate([system.a_dd - np.eye(d), system.b_da], axis=1)
    some = np.linalg.lstsq(still, -system.c_d, rcond=TOLERANCE)[0]  # the smallest, so orthogonal to what is free
    if np.abs(still @ some + system.c_d).max() > 1e-6 * (1 + np.abs(system.c_d).max()):
        raise InputError(
            "No action holds this system at rest anywhere, so it has no infinite horizon. Plan with a finite one."
        )
    free = scipy.linalg.null_space(still, rcond=TOLERANCE)
    steps = np.linalg.lstsq(free[:d], (goal - some[:d]).T, rcond=TOLERANCE)[0]
    target, hold = np.split((some[:, None] + free @ steps).T, [d], axis=1)
    return target, hold
