"""Recovery up to a rotation and one shared monotone warp: what a JEPA can guarantee in a non-Gaussian world.

    h ≈ Q w(z) + const,    QᵀQ = I,    w increasing, the same curve for every coordinate of z    (fit_warp)
    z ≈ Q w⁻¹(h) + const,              the same curve for every coordinate of h, h = w(Qᵀz)      (fit_latent_warp)

Independent coordinates with the same density share their first eigenfunction w, and the alignment loss recovers it up
to a rotation (first form). A coordinate-wise nonlinearity at the end of an encoder gives the second form. Q and w are
fitted alternately, by Procrustes and monotone regression; w carries the scale. Whiten h for the first form if its
covariance is far from the identity, but not for the second, whose axes are the latents' own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import procrustes
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.validation import check_matrices
from jepatlas.identifiability.warps.monotone import Monotone, fit_monotone

__all__ = ["Curve", "LatentWarpFit", "Side", "WarpFit", "WarpSides", "fit_latent_warp", "fit_sides", "fit_warp"]

Curve = Callable[[np.ndarray], np.ndarray]
Side = Literal["states", "latents"]


@dataclass(frozen=True)
class WarpFit:
    """h ≈ turn(warp(z)), and z ≈ unwarp(turn⁻¹(h))."""

    turn: LinearMap  # orthogonal: w(z) (b, n) → h (b, d)
    warp: Monotone  # w, in units of h
    unwarp: Monotone  # regression of z on w(z): the inverse of w where h has no noise

    def encode(self, z: np.ndarray) -> np.ndarray:
        return self.turn.apply(self.warp(z))

    def decode(self, h: np.ndarray) -> np.ndarray:
        return self.unwarp(self.turn.invert().apply(h))


@dataclass(frozen=True)
class LatentWarpFit:
    """z ≈ turn(unwarp(h)), and h ≈ warp(turn⁻¹(z))."""

    turn: LinearMap  # orthogonal: w⁻¹(h) (b, d) → z (b, n)
    unwarp: Monotone  # w⁻¹, in units of z
    warp: Monotone  # w: regression of h on turn⁻¹(z)

    def encode(self, z: np.ndarray) -> np.ndarray:
        return self.warp(self.turn.invert().apply(z))

    def decode(self, h: np.ndarray) -> np.ndarray:
        return self.turn.apply(self.unwarp(h))


def fit_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> WarpFit:
    """The best rotation and shared warp of the states' coordinates, for latents h (b, d) and states z (b, n).

    Alternation stops when Q converges, usually after three rounds where d ≥ n: for independent identically
    distributed coordinates, E[h zᵀ] is already a multiple of Q.
    """
    check_matrices(h=h, z=z)
    return WarpFit(*_alternate("z", z, h, pieces, rounds))


def fit_latent_warp(h: np.ndarray, z: np.ndarray, *, pieces: int = 16, rounds: int = 30) -> LatentWarpFit:
    """The best rotation and shared warp of the latents' coordinates, for latents h (b, d) and states z (b, n).

    >>> z = np.random.default_rng(0).standard_normal((2000, 2))
    >>> h = np.exp(z @ np.array([[0.6, -0.8], [0.8, 0.6]]))
    >>> float(np.square(fit_latent_warp(h, z).decode(h) - z).mean()) < 0.01
    True
    """
    check_matrices(h=h, z=z)
    return LatentWarpFit(*_alternate("h", h, z, pieces, rounds))


def _alternate(
    name: str, x: np.ndarray, y: np.ndarray, pieces: int, rounds: int
) -> tuple[LinearMap, Monotone, Monotone]:
    """Q and w with y ≈ Q w(x), and the regression of x on w."""
    x = x.astype(np.float64)
    y = y.astype(np.float64)
    ends = np.array([x.min(), x.max()])
    if ends[0] == ends[1]:
        raise InputError(f"'{name}' must have at least two distinct values to fit a warp, but is constant.")
    warp = Monotone(ends, ends)  # the identity
    turn = procrustes(x, y)
    for _ in range(rounds):
        before = turn.weight
        warp = fit_monotone(x, _rotate_back(turn, warp, y, x), pieces=pieces)
        turn = procrustes(warp(x), y)
        if np.abs(turn.weight - before).max() < 1e-6:
            break
    return turn, warp, fit_monotone(turn.invert().apply(y), x, pieces=pieces)


def _rotate_back(turn: LinearMap, warp: Curve, h: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Q⁻¹h, (b, n). Where d < n, the components that Q drops are taken from the current warp, so no step is worse."""
    back = turn.invert()
    current = warp(z)
    return back.apply(h) + current - back.apply(turn.apply(current))


@dataclass(frozen=True)
class WarpSides:
    """Warps in both forms, and the better one. For the states' form, latents are whitened by `white`, if given."""

    states: WarpFit
    latents: LatentWarpFit | None  # None if the latents are constant
    white: LinearMap | None
    better: Side

    @property
    def sides(self) -> tuple[Side, ...]:
        return ("states",) if self.latents is None else ("states", "latents")

    def whitened(self, h: np.ndarray) -> np.ndarray:
        return h if self.white is None else self.white.apply(h)

    def decode(self, h: np.ndarray, side: Side) -> np.ndarray:
        if side == "latents" and self.latents is not None:
            return self.latents.decode(h)
        return self.states.decode(self.whitened(h))

    def straightened(self, h: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Latents and states with the better warp undone, so that the remaining relation is linear."""
        if self.better == "latents" and self.latents is not None:
            return self.latents.unwarp(h), z
        return h, self.states.warp(z)


def fit_sides(h: np.ndarray, z: np.ndarray, white: LinearMap | None = None) -> WarpSides:
    """Fit both forms on all rows of h (b, d) and z (b, n); the better one leaves less squared error of z."""
    states = fit_warp(h if white is None else white.apply(h), z)
    if (h == h.flat[0]).all():
        return WarpSides(states, None, white, "states")
    both = WarpSides(states, fit_latent_warp(h, z), white, "latents")
    errors = {side: float(np.square(z - both.decode(h, side)).sum()) for side in both.sides}
    if errors["latents"] < errors["states"]:
        return both
    return WarpSides(states, both.latents, white, "states")
