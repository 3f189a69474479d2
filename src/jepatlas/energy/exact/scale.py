"""Asymmetric scale effort: what it takes to change a size s > 0 where growing and shrinking cost differently.

    L(s, ṡ) = (a·ṡ⁺ + b·ṡ⁻)/s,    E(s, s') = a·log⁺(s'/s) + b·log⁺(s/s')

A quasimetric in closed form: no path does better than the one that only grows or only shrinks.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["scale_energy"]


def scale_energy(s: np.ndarray, s_next: np.ndarray, grow: float = 1.0, shrink: float = 1.0) -> np.ndarray:
    """The energy of going from each s to each s_next, which broadcast; `grow` is a and `shrink` is b.

    >>> scale_energy(np.array([1.0, np.e]), np.array([np.e, 1.0]), grow=1.0, shrink=3.0).tolist()
    [1.0, 3.0]
    """
    for name, value in (("grow", grow), ("shrink", shrink)):
        if not 0 < value < math.inf:
            raise InputError(
                f"{name} is {value}, but it must be positive and finite: a change that is free has no scale."
            )
    change = _log("s_next", s_next) - _log("s", s)
    return np.where(change > 0, grow * change, -shrink * change)


def _log(name: str, given: np.ndarray) -> np.ndarray:
    sizes = np.asarray(given, dtype=np.float64)
    if not ((sizes > 0) & np.isfinite(sizes)).all():
        raise InputError(
            f"{name} holds {sizes[~((sizes > 0) & np.isfinite(sizes))][0]}, but sizes are positive and finite."
        )
    return np.log(sizes)
