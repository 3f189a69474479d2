"""Recovery up to a rotation and one shared monotone warp: what a JEPA can promise in a world that is not Gaussian.

    h ≈ Q w(z) + const,    QᵀQ = I,    w rising, the same scalar curve for every coordinate of z    (fit_warp)
    z ≈ Q w⁻¹(h) + const,              the same for every coordinate of h, where h = w(Qᵀz)         (fit_latent_warp)

Independent coordinates with the same law have one first eigenfunction w, and the alignment loss finds it up to a
rotation: that is the first. The second is the first with the sides exchanged; an activation at the end of an encoder
makes it. Q and the curve are fitted in turns, Procrustes and monotone regression, and the curve has the scale. Whiten h
for the first if its covariance is far from the identity; not for the second, whose axes are the latents' own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import procrustes
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.checks import check_matrices
from jepatlas.identifiability.warps.monotone import Monotone, fit_monotone

__all__ = ["Curve", "LatentWarpFit", "WarpFit", "fit_latent_warp", "fit_warp", "turned_back"]

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


@dataclass(frozen=True)
class LatentWarpFit:
    """z ≈ turn(unwarp(h)), and back: h ≈ warp(turn⁻¹(z))."""

    turn: LinearMap  # orthogonal: w⁻¹(h) (b, d) → z (b, n)
    unwarp: Monotone  # w⁻¹, in units of z
    warp: Monotone  # w, the regression of h on z turned back; to be drawn

    def encode(self, z: np.ndarray) -> np.ndarray:
        return self.warp(self.turn.invert().apply(z))

    def decode(self, h: np.ndarray) -> np.ndarray:
        return self.turn.apply(self.unwarp(h))


def fit_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> WarpFit:
    """The best rotation and shared warp for latents h (b, d) and states z (b, n), on all rows.

    The turns end when Q rests. From Procrustes on z itself they rarely need more than three where d ≥ n: for
    independent z that are alike, E[h zᵀ] is already a multiple of Q.
    """
    check_matrices(h=h, z=z)
    return WarpFit(*_in_turns("z", z, h, pieces, rounds))


def fit_latent_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> LatentWarpFit:
    """The best rotation and shared warp along the axes of the latents h (b, d), for states z (b, n), on all rows.

    >>> z = np.random.default_rng(0).standard_normal((2000, 2))
    >>> h = np.exp(z @ np.array([[0.6, -0.8], [0.8, 0.6]]))
    >>> float(np.square(fit_latent_warp(h, z).decode(h) - z).mean()) < 0.01
    True
    """
    check_matrices(h=h, z=z)
    return LatentWarpFit(*_in_turns("h", h, z, pieces, rounds))


def _in_turns(
    name: str, x: np.ndarray, y: np.ndarray, pieces: int, rounds: int
) -> tuple[LinearMap, Monotone, Monotone]:
    """Q and w with y ≈ Q w(x), and the regression of x on w."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    ends = np.array([x.min(), x.max()])
    if ends[0] == ends[1]:
        raise InputError(f"A warp needs at least two different values of '{name}', but all are the same.")
    warp, turn = Monotone(ends, ends), procrustes(x, y)  # w(x) = x
    for _ in range(rounds):
        before = turn.weight
        warp = fit_monotone(x, turned_back(turn, warp, y, x), pieces=pieces)
        turn = procrustes(warp(x), y)
        if np.abs(turn.weight - before).max() < 1e-6:
            break
    return turn, warp, fit_monotone(turn.invert().apply(y), x, pieces=pieces)


def turned_back(turn: LinearMap, warp: Curve, h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """h turned back, (b, n). What Q drops where d < n is filled from the present warp, and no turn makes it worse."""
    back, now = turn.invert(), warp(z)
    return back.apply(h) + now - back.apply(turn.apply(now))
