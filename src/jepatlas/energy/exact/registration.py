"""Closed-form energies of sizes and of monotone maps of an interval.

Sizes s > 0 that grow and shrink at different costs, with L(s, ṡ) = (a·ṡ⁺ + b·ṡ⁻)/s, have the energy

    E(s, s') = a·log⁺(s'/s) + b·log⁺(s/s')

For maps φ of an interval of length R, under the length (∫u_x² dx)^½ of the velocity u that carries φ_t along, the map
φ ↦ 2√φ' is an isometry onto a part of the sphere, so

    E(φ₀, φ₁) = 2√R · arccos(∫√(φ₀'φ₁') / R)

which is symmetric. Its directed counterpart applies the scale energy to each piece of material,

    E(φ₀, φ₁) = ∫ a·log⁺(φ₁'/φ₀') + b·log⁺(φ₀'/φ₁') dX

and is exact: the straight path from φ₀' to φ₁' changes every slope in one direction only and preserves the interval.
(∫ a·u_x⁺ + b·u_x⁻ dx of the velocity would cost the same in both directions, since expansion equals contraction.) Maps
are given by their values at sample points and are linear in between, so both integrals are sums.
"""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["interval_energies", "scale_energy", "strain_energies"]


def scale_energy(s: np.ndarray, s_next: np.ndarray, grow: float = 1.0, shrink: float = 1.0) -> np.ndarray:
    """The energy from each s to each s_next, which broadcast; `grow` is a and `shrink` is b.

    >>> scale_energy(np.array([1.0, np.e]), np.array([np.e, 1.0]), grow=1.0, shrink=3.0).tolist()
    [1.0, 3.0]
    """
    for name, value in (("grow", grow), ("shrink", shrink)):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be positive and finite, but {value} was given.")
    change = _log("s_next", s_next) - _log("s", s)
    return np.where(change > 0, grow * change, -shrink * change)


def interval_energies(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The symmetric E from each start (m, k) to each end (n, k), maps by their values at the same k points: (m, n).

    >>> interval_energies(np.array([[0.0, 0.5, 1.0]]), np.array([[0.0, 0.5, 1.0], [0.0, 0.9, 1.0]])).round(4).tolist()
    [[0.0, 0.9273]]
    """
    start_pieces, end_pieces = _pieces(start, end)
    angle = _angle(np.sqrt(start_pieces)[:, None], np.sqrt(end_pieces)[None])
    return 2 * np.sqrt(start_pieces[0].sum()) * angle


def strain_energies(
    start: np.ndarray, end: np.ndarray, stretch: float = 1.0, squeeze: float = 1.0, at: np.ndarray | None = None
) -> np.ndarray:
    """The directed energy from each start (m, k) to each end (n, k): (m, n).

    `at` holds the sample points (k,), which weight the pieces; it defaults to equal spacing over [0, 1].
    """
    start_pieces, end_pieces = _pieces(start, end)
    count = start_pieces.shape[1] + 1
    at = np.linspace(0, 1, count) if at is None else np.asarray(at, dtype=np.float64)
    if at.shape != (count,) or not (np.diff(at) > 0).all():
        raise InputError(f"at must be {count} increasing sample points, one per value of a map.")
    return scale_energy(start_pieces[:, None], end_pieces[None], stretch, squeeze) @ np.diff(at)


def _log(name: str, given: np.ndarray) -> np.ndarray:
    sizes = np.asarray(given, dtype=np.float64)
    valid = (sizes > 0) & np.isfinite(sizes)
    if not valid.all():
        raise InputError(f"{name} must be positive and finite, but it holds {sizes[~valid][0]}.")
    return np.log(sizes)


def _angle(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The angle between vectors of equal length, accurate for nearly equal vectors unlike arccos."""
    return 2 * np.arctan2(np.linalg.norm(one - other, axis=-1), np.linalg.norm(one + other, axis=-1))


def _pieces(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The increments of each map between sample points, for maps onto the same interval."""
    one, other = _check_maps("start", start), _check_maps("end", end)
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"start and end must have equally many values per map, but have {one.shape[1]} and {other.shape[1]}."
        )
    ends = np.vstack([one, other])[:, [0, -1]]
    if not np.allclose(ends, ends[0], rtol=0, atol=1e-9 * (ends[0, 1] - ends[0, 0])):
        raise InputError("All maps in start and end must have the same first and last value.")
    return np.diff(one), np.diff(other)


def _check_maps(name: str, given: np.ndarray) -> np.ndarray:
    maps = np.asarray(given, dtype=np.float64)
    if maps.ndim != 2 or maps.shape[1] < 2 or len(maps) == 0:
        raise InputError(f"{name} must be (count, points) with at least 2 points, but its shape is {maps.shape}.")
    if not np.isfinite(maps).all() or not (np.diff(maps) > 0).all():
        raise InputError(f"{name} must hold increasing maps, but one does not increase between all sample points.")
    return maps
