"""Registration in one dimension: monotone maps φ of an interval, and the effort of turning one into another.

Under the length (∫u_x² dx)^½ of the velocity u that carries φ_t along, the map φ ↦ 2√φ' is an isometry onto a part of
the sphere, so with R the length of the interval

    E(φ₀, φ₁) = 2√R · arccos(∫√(φ₀'φ₁') / R)

which is symmetric: a control. Its one-way sibling takes the size of each piece of material by itself, at the effort of
stretching and squeezing it, which is a·log⁺ + b·log⁺ of the ratio of slopes:

    E(φ₀, φ₁) = ∫ a·log⁺(φ₁'/φ₀') + b·log⁺(φ₀'/φ₁') dX

That is exact: the straight path from φ₀' to φ₁' changes every slope in one direction only, and keeps the interval.
(With ∫ a·u_x⁺ + b·u_x⁻ dx of the velocity instead, both directions cost the same: as much expands as shrinks.)
Maps are given by their values at sample points and are straight between them; for such maps both integrals are sums.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.scale import scale_energy

__all__ = ["interval_energies", "interval_path", "strain_energies"]


def interval_energies(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """E from each start (m, k) to each end (n, k), maps by their values at the same k points: (m, n).

    >>> interval_energies(np.array([[0.0, 0.5, 1.0]]), np.array([[0.0, 0.5, 1.0], [0.0, 0.9, 1.0]])).round(4).tolist()
    [[0.0, 0.9273]]
    """
    pieces, later = _pieces(start, end)
    angle = _angle(np.sqrt(pieces)[:, None], np.sqrt(later)[None])
    return 2 * np.sqrt(pieces[0].sum()) * angle


def interval_path(start: np.ndarray, end: np.ndarray, steps: int) -> np.ndarray:
    """The shortest way from one map (k,) to another, at `steps` + 1 times: (steps + 1, k)."""
    if steps < 1:
        raise InputError(f"steps is {steps}, but a path has at least 1.")
    one, other = (np.sqrt(pieces[0]) for pieces in _pieces(np.atleast_2d(start), np.atleast_2d(end)))
    angle, t = _angle(one, other), np.linspace(0, 1, steps + 1)[:, None]
    if angle < 1e-8:  # where sines are too small to divide by, the arc is straight
        roots = (1 - t) * one + t * other
    else:
        roots = (np.sin((1 - t) * angle) * one + np.sin(t * angle) * other) / np.sin(angle)
    first = np.full((steps + 1, 1), np.ravel(start)[0])
    return np.hstack([first, first + np.cumsum(roots**2, 1)])


def strain_energies(
    start: np.ndarray, end: np.ndarray, stretch: float = 1.0, squeeze: float = 1.0, at: np.ndarray | None = None
) -> np.ndarray:
    """The one-way energy from each start (m, k) to each end (n, k): (m, n).

    `at` are the sample points (k,), which weigh the pieces; evenly spread over [0, 1] if not given.
    """
    pieces, later = _pieces(start, end)
    at = np.linspace(0, 1, pieces.shape[1] + 1) if at is None else np.asarray(at, dtype=np.float64)
    if at.shape != (pieces.shape[1] + 1,) or not (np.diff(at) > 0).all():
        raise InputError(f"at must be {pieces.shape[1] + 1} increasing sample points, one for each value of a map.")
    return scale_energy(pieces[:, None], later[None], stretch, squeeze) @ np.diff(at)


def _angle(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between vectors of equal length; unlike the arccosine it keeps its digits where they almost agree."""
    return 2 * np.arctan2(np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1))


def _pieces(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each map makes of each piece of the interval, for maps of one interval onto one interval."""
    maps = [_checked(name, given) for name, given in (("start", start), ("end", end))]
    if maps[0].shape[1] != maps[1].shape[1]:
        raise InputError(f"start has {maps[0].shape[1]} values per map and end {maps[1].shape[1]}. Sample both alike.")
    ends = np.vstack(maps)[:, [0, -1]]
    if not np.allclose(ends, ends[0], rtol=0, atol=1e-9 * (ends[0, 1] - ends[0, 0])):
        raise InputError("The maps do not all have the same first and last value, so they fill different intervals.")
    return np.diff(maps[0]), np.diff(maps[1])


def _checked(name: str, given: np.ndarray) -> np.ndarray:
    maps = np.asarray(given, dtype=np.float64)
    if maps.ndim != 2 or maps.shape[1] < 2 or len(maps) == 0:
        raise InputError(f"{name} has the shape {maps.shape}, but maps are (count, points) with at least 2 points.")
    if not np.isfinite(maps).all() or not (np.diff(maps) > 0).all():
        raise InputError(f"{name} holds a map that does not increase from each sample point to the next.")
    return maps
