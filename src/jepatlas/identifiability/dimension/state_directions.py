"""Directions of the state, by how well a prediction ẑ(h) gives them.

    share_k = 1 − E (v_k·(u − û))² / Var(v_k·u)        u = z whitened, û = ẑ in the same coordinates

The directions v_1, v_2, … are the principal ones of what ẑ leaves on the rows of the fit, best held first; shares are
taken on others, so that many dimensions and few rows do not make a direction look worse than it is.
"""

from __future__ import annotations

import numpy as np

from jepatlas.identifiability.truth.halves import Halves

__all__ = ["StateDirections", "name_direction", "r2_of_columns"]

NAMED = 0.15  # share of a direction's largest coefficient below which a coordinate is not named
MOSTLY = 0.8  # of a coordinate's variance, from which it counts as lying in some directions


class StateDirections:
    """For k directions that vary, `rows` (k, n) of unit length: their coefficients on the standardised coordinates."""

    def __init__(self, halves: Halves, decoded: np.ndarray) -> None:
        fit, score = halves.split
        self._mean, spread, self._root, self._unit = _whitening(halves.z[fit])
        left = (halves.z - decoded) @ self._unit
        self._axes = np.linalg.eigh(left[fit].T @ left[fit])[1]
        self._left, self._along = left[score] @ self._axes, self.white(halves.z[score]) @ self._axes
        rows = (self._unit @ self._axes).T * spread
        self.rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)

    def white(self, z: np.ndarray) -> np.ndarray:
        """u (b, k)."""
        return (z - self._mean) @ self._unit

    def shares(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(k,), of (weighted) rows to score on."""
        return r2_of_columns(self._along, self._left, np.ones(len(self._along)) if weights is None else weights)

    def coordinates(self, chosen: np.ndarray) -> list[str]:
        """The coordinates of z that lie, for the most part, in the chosen directions (a mask)."""
        varies = np.maximum(np.square(self._root).sum(1), np.finfo(float).tiny)
        within = np.square(self._root @ self._axes[:, chosen]).sum(1)
        return [f"z[{i}]" for i in np.flatnonzero(within > MOSTLY * varies)]


def r2_of_columns(target: np.ndarray, left: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """R² of each column, of which `left` is left; 0 for one that does not vary: there is nothing of it to hold."""
    share = weights / weights.sum()
    spread = share @ np.square(target - share @ target)
    return 1 - np.where(spread > 0, share @ np.square(left), 1) / np.where(spread > 0, spread, 1)


def _whitening(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, spread, R and U with z − mean = R u and u = Uᵀ(z − mean) white; directions that do not vary are left out.

    Coordinates are brought to one scale first: a small one is not one that does not vary.
    """
    shifted = z - z[0]  # so that a constant column is exactly zero, not rounding
    spread = shifted.std(0)
    units = np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(shifted / units, rowvar=False, bias=True)))
    kept = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    roots, axes = np.sqrt(values[kept]), vectors[:, kept]
    return z[0] + shifted.mean(0), spread, units[:, None] * axes * roots, axes / (units[:, None] * roots)


def name_direction(row: np.ndarray) -> str:
    """A direction as a combination of the standardised coordinates z[0], z[1], …; what hardly takes part is left out.

    >>> name_direction(np.array([0.01, -0.6, 0.8]))
    '0.80·z[2] − 0.60·z[1]'
    """
    order = [i for i in np.argsort(-np.abs(row), kind="stable") if abs(row[i]) > NAMED * np.abs(row).max()]
    if len(order) == 1:
        return f"z[{order[0]}]"
    sign = np.sign(row[order[0]])
    terms = [("−" if sign * row[i] < 0 else "+", f"{abs(row[i]):.2f}·z[{i}]") for i in order]
    return terms[0][1] + "".join(f" {mark} {term}" for mark, term in terms[1:])
