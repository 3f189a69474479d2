"""Ridge maps of permuted pairs from one factorisation of the source: what a null with refits needs, without refits.

A permutation changes the partners Y of the source rows X, but not X. With the eigenvectors V of the scatter of X and
the projected rows P = XV, the map of every permutation follows from one product,

    W_λ = S_yx V (Λ + λ)⁻¹ Vᵀ,        VᵀS_xy = PᵀY

and the penalty is chosen as in `ridge_penalty`: by the error on a held-out quarter of the pairs. Products are in
float32 and factorisations in float64; each projected direction is rounded relative to its own size, so none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps.ridge_penalty import CANDIDATES
from jepatlas.core.linear_moments import PairMoments, prepared

__all__ = ["PermutedRidge"]

_ALIKE = 1e-6  # relative difference of residuals at the rounding of float32
_TINY = np.finfo(np.float64).tiny
_ROUNDINGS = 16  # as in `linear_moments`


@dataclass(frozen=True)
class _Factors:
    """Mean, units and eigendecomposition of the scatter of rows, and its candidate penalties."""

    mean: np.ndarray  # (d,)
    units: np.ndarray  # (d,)
    values: np.ndarray  # (d,)
    vectors: np.ndarray  # (d, d)
    count: float
    penalties: np.ndarray  # in the order of CANDIDATES
    rounding: float  # a penalty that does not exceed it is lost: least squares

    @classmethod
    def of(cls, x: np.ndarray, standardise: bool) -> _Factors:
        moments = PairMoments.of(x, np.zeros((len(x), 0), x.dtype))
        own = prepared(moments, offset=True, standardise=standardise)
        units = moments.spread() if standardise else np.ones(moments.d_in)
        values, vectors = np.linalg.eigh(own.xx)
        penalties = np.trace(own.xx) / own.d_in * np.array(CANDIDATES)
        rounding = own.d_in * own.rounding * np.trace(own.xx)
        return cls(moments.x_mean, units, values, vectors, moments.count, penalties, rounding)

    def shrunk(self, penalty: float) -> np.ndarray:
        """1/(Λ + λ); zero in directions that do not vary, if there is no penalty."""
        if penalty > self.rounding:
            return 1 / np.maximum(self.values + penalty, _TINY)
        live = self.values > _ROUNDINGS * np.finfo(np.float64).eps * self.values[-1]
        return np.where(live, 1 / np.where(live, self.values, 1.0), 0.0)


class PermutedRidge:
    """Predictions (m, d_out) for `scored` rows of maps fitted to x and any partners of its rows.

    `held` (n,) marks the rows of x on which the penalty is chosen; None for least squares.
    """

    def __init__(self, x: np.ndarray, scored: np.ndarray, held: np.ndarray | None, *, standardise: bool = True) -> None:
        self.chosen = _Factors.of(x if held is None else x[~held], standardise)
        self.whole = self.chosen if held is None else _Factors.of(x, standardise)
        self.held = held
        basis = self.chosen.vectors
        projected = ((x - self.chosen.mean) / self.chosen.units @ basis).astype(np.float32)
        fit = slice(None) if held is None else ~held
        self._shrunk = np.stack([self.chosen.shrunk(penalty) for penalty in self.chosen.penalties])
        self._fit = np.ascontiguousarray(projected[fit].T)
        rest = np.zeros((0, len(basis)), np.float32) if held is None else projected[held]
        self._held = np.ascontiguousarray(rest.T)
        self._held_sum = rest.sum(0, dtype=np.float64).astype(np.float32)
        self._held_scatter = (rest.T @ rest).astype(np.float64)
        self._turn = (self.whole.vectors.T * (self.chosen.units / self.whole.units)) @ basis
        self._scored = (scored - self.whole.mean) / self.whole.units @ self.whole.vectors
        shift = self.whole.count * (self.whole.mean - self.chosen.mean) / self.whole.units
        self._shift = self.whole.vectors.T @ shift
        self._solved: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def predict(self, y: np.ndarray) -> np.ndarray:
        """Predictions of the map fitted to x and its partners y (n, d_out), centred nearly and in float32."""
        mean = np.ones(len(y), y.dtype) / len(y) @ y
        if self.held is None:
            best = 0  # no penalty
            product = self._fit @ y
        else:
            seen, others = y[~self.held], y[self.held]
            product = self._fit @ seen
            beside = self._held @ others
            best = self._best(product, beside, np.ones(len(seen), y.dtype) / len(seen) @ seen, others)
            product = product + beside
        solution, shift = self._solution(best)
        return solution @ product - np.outer(shift, mean) + mean

    def _best(self, seen: np.ndarray, beside: np.ndarray, mean: np.ndarray, others: np.ndarray) -> int:
        """Number of the candidate with the smallest error on the held-out rows; see `ridge_penalty`."""
        wanted = beside - np.outer(self._held_sum, mean)
        linear = np.einsum("ij,ij->i", seen, wanted, dtype=np.float64)
        square = self._held_scatter * (seen @ seen.T)
        left = others - mean
        total = float(np.vdot(left, left))
        shrunk = self._shrunk
        residuals = np.maximum(total - 2 * shrunk @ linear + np.einsum("pi,pi->p", shrunk @ square, shrunk), 0.0)
        return int(np.flatnonzero(residuals <= residuals.min() * (1 + _ALIKE))[-1])

    def _solution(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """What multiplies PᵀY (m, d), and the mean of y (m,), for one candidate."""
        if number not in self._solved:
            # the penalty was chosen in units of the rows to fit on, and is not rescaled
            shrunk = self._scored * self.whole.shrunk(self.chosen.penalties[number])
            self._solved[number] = ((shrunk @ self._turn).astype(np.float32), (shrunk @ self._shift).astype(np.float32))
        return self._solved[number]
