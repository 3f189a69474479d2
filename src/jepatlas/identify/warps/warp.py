"""Recovery up to a rotation and one shared monotone warp: what a JEPA can promise in a world that is not Gaussian.

    h ≈ Q w(z) + const,    QᵀQ = I,    w rising, the same scalar curve for every coordinate of z

Independent coordinates with the same law have one first eigenfunction w, and the alignment loss finds it up to a
rotation. Q and w are fitted in turns, Procrustes and monotone regression. The scale of h is w's. Whiten h first if its
covariance is far from the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.base.linear import procrustes
from jepatlas.base.records import LinearMap
from jepatlas.identify.checks import check_matrices
from jepatlas.identify.warps.monotone import Monotone, fit_monotone

__all__ = ["Curve", "WarpFit", "fit_warp", "turned_back"]

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class WarpFit:
    """h ≈ turn(w(z)), and back: z ≈ unwarp(turn⁻¹(h))."""

    turn: LinearMap  # orthogonal: w(z) (b, n) → h (b, d)
    warp: Monotone  # w, in units of h; to be drawn
    unwarp: Monotone  # regression of z on w, which is w's inverse where h has no noise

    def encode(self, z: np.ndarray) -> np.ndarray:
        return self.turn.apply(self.warp(z))

    def decode(self, h: np.ndarray) -> np.ndarray:
        return self.unwarp(self.turn.invert().apply(h))


def fit_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> WarpFit:
    """The best rotation and shared warp for latents h (b, d) and states z (b, n), on all rows.

    The turns end when Q rests. From Procrustes on z itself they rarely need more than three where d ≥ n: for
    independent z that are alike, E[h zᵀ] is already a multiple of Q.
    """
    check_matrices(h=h, z=z)
    h, z = h.astype(np.float64), z.astype(np.float64)
    ends = np.array([z.min(), z.max()])
    if ends[0] == ends[1]:
        raise InputError("A warp needs at least two different values of 'z', but all are the same.")
    warp, turn = Monotone(ends, ends), procrustes(z, h)  # w(z) = z
    for _ in range(rounds):
        before = turn.weight
        warp = fit_monotone(z, turned_back(turn, warp, h, z), pieces=pieces)
        turn = procrustes(warp(z), h)
        if np.abs(turn.weight - before).max() < 1e-6:
            break
    return WarpFit(turn, warp, fit_monotone(turn.invert().apply(h), z, pieces=pieces))


def turned_back(turn: LinearMap, warp: Curve, h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """h turned back, (b, n). What Q drops where d < n is filled from the present warp, and no turn makes it worse."""
    back, now = turn.invert(), warp(z)
    return back.apply(h) + now - back.apply(turn.apply(now))
