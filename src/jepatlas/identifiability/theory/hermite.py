"""The Hermite decomposition of a learned map h(z) under z ~ N(0, I): how much of it is linear, quadratic, …

    ψ_k(z) = Π_i He_{k_i}(z_i) / √(k_i!)      E ψ_k ψ_l = 1[k = l]      |k| = Σ_i k_i
    h = Σ_k c_k ψ_k + rest                    v_d = Σ_{|k|=d} ‖c_k‖²    E‖h − E h‖² = Σ_{d≥1} v_d

The coefficients are least-squares fits on three separate thirds of the samples. Squares of fitted coefficients would
count their own noise as variance, so v_d is the product of one third's coefficients with another's: unbiased, hence
slightly negative now and then where there is nothing. What lies beyond the last degree is the product, on the rows of
one third, of what the other two leave unexplained.

Noise in h biases nothing. Much energy beyond the last degree does, by terms/rows of it, and high powers have tails so
heavy that intervals from few rows are too short: raise the degree until little lies beyond.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.checks import check_matrices, check_standard

__all__ = ["HermiteFit", "degree_variances", "hermite_basis", "largest_degree", "multi_indices"]

PARTS = 3
ROWS_PER_TERM = 2
"""With fewer rows for each coefficient, a third of the samples says more about its noise than about h."""


def degree_variances(
    h: np.ndarray,
    z: np.ndarray,
    degree: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Estimates with group-bootstrap intervals, of latents h (b, d) that are a function of states z (b, n):

    degree_1 … degree_D   v_d, summed over the latents
    beyond                variance at all higher degrees, and whatever is no function of z
    total                 their sum, E‖h − E h‖²
    nonlinear             total − v_1, which Theorem 3 bounds by D
    """
    fit = HermiteFit(h, z, degree, rng, groups)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        energies, beyond = fit.energies(weights), fit.beyond(weights)
        variances = {f"degree_{d}": float(energies[fit.degrees == d].sum()) for d in range(1, degree + 1)}
        total = sum(variances.values()) + beyond
        return variances | {"beyond": beyond, "total": total, "nonlinear": total - variances["degree_1"]}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def multi_indices(n: int, degree: int) -> np.ndarray:
    """All k in ℕⁿ with |k| ≤ degree, by degree: (n+degree choose degree) rows.

    >>> multi_indices(2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    chosen = [c for d in range(degree + 1) for c in itertools.combinations_with_replacement(range(n), d)]
    return np.array([np.bincount(np.array(c, dtype=int), minlength=n) for c in chosen])


def hermite_basis(z: np.ndarray, degree: int) -> np.ndarray:
    """ψ_k(z) for the k of `multi_indices`, as columns; orthonormal under N(0, I)."""
    z = z.astype(np.float64)
    powers = [np.ones_like(z), z]  # He_k/√k!, by its own recurrence: k! alone would overflow
    for k in range(1, degree):
        powers.append((z * powers[k] - math.sqrt(k) * powers[k - 1]) / math.sqrt(k + 1))
    indices = multi_indices(z.shape[1], degree)
    basis = np.ones((len(z), len(indices)), order="F")
    for term, index in enumerate(indices):
        for i in np.flatnonzero(index):
            basis[:, term] *= powers[index[i]][:, i]
    return basis


def largest_degree(n: int, rows: int) -> int:
    """The largest total degree in n dimensions whose terms `rows` rows can support; 0 if not even linear ones.

    >>> largest_degree(2, 120), largest_degree(100, 120)
    (4, 0)
    """
    degree = 0
    while ROWS_PER_TERM * math.comb(n + degree + 1, n) <= rows // PARTS:
        degree += 1
    return degree


class HermiteFit:
    """Coefficients of h on each third of the samples, and how they would differ on resampled rows.

    A resample is taken to first order, c(w) ≈ c + (ΨᵀΨ)⁻¹ Ψᵀ(w−1)r: fits anew would take long, and with few rows for
    each term they would be far noisier than the fit itself. r is the residual over √(1 − leverage), because a fit
    comes closer to its own rows than to others.
    """

    coefficients: np.ndarray  # (3, terms, d)
    indices: np.ndarray  # (terms, n)
    degrees: np.ndarray  # (terms,)
    parts: np.ndarray  # (b,): the third that a row belongs to

    def __init__(
        self, h: np.ndarray, z: np.ndarray, degree: int, rng: np.random.Generator, groups: np.ndarray | None = None
    ) -> None:
        check_matrices(groups, h=h, z=z)
        check_standard("z", z)
        self.parts = _thirds(len(h), rng, groups)
        _check_support(z.shape[1], degree, self.parts)
        self.indices = multi_indices(z.shape[1], degree)
        self.degrees = self.indices.sum(1)
        h, basis = h.astype(np.float64), hermite_basis(z, degree)
        self._rows = [np.flatnonzero(self.parts == part) for part in range(PARTS)]
        fits = [_least_squares(basis[rows], h[rows]) for rows in self._rows]
        self.coefficients = np.stack([c for c, _, _ in fits])
        self._influence = [(solver, residual) for _, solver, residual in fits]
        self._unexplained = np.empty(len(h))
        for part, rows in enumerate(self._rows):
            one, other = (h[rows] - basis[rows] @ c for c in np.delete(self.coefficients, part, axis=0))
            self._unexplained[rows] = np.sum(one * other, axis=1)

    def energies(self, weights: np.ndarray | None = None) -> np.ndarray:
        """‖c_k‖² of each term, (terms,): the mean product of two thirds' coefficients."""
        c = self.coefficients if weights is None else self._resampled(weights)
        return (np.square(c.sum(0)) - np.square(c).sum(0)).sum(1) / (PARTS * (PARTS - 1))

    def beyond(self, weights: np.ndarray | None = None) -> float:
        """Variance that the basis leaves. To first order it does not depend on the coefficients."""
        return float(np.average(self._unexplained, weights=weights))

    def _resampled(self, weights: np.ndarray) -> np.ndarray:
        shifts = [
            solver @ ((weights[rows] - 1)[:, None] * residual)
            for rows, (solver, residual) in zip(self._rows, self._influence, strict=True)
        ]
        return self.coefficients + np.stack(shifts)


def _thirds(rows: int, rng: np.random.Generator, groups: np.ndarray | None) -> np.ndarray:
    labels = np.arange(rows) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(labels.max()) + 1
    if count < PARTS:
        raise InputError(f"A Hermite decomposition needs at least {PARTS} groups of samples, but there are {count}.")
    return (rng.permutation(count) % PARTS)[labels]


def _check_support(n: int, degree: int, parts: np.ndarray) -> None:
    if degree < 1:
        raise InputError(f"The degree of a Hermite decomposition must be at least 1, but {degree} was given.")
    rows = PARTS * int(np.bincount(parts, minlength=PARTS).min())
    if degree <= (best := largest_degree(n, rows)):
        return
    need = PARTS * ROWS_PER_TERM * math.comb(n + degree, n)
    remedy = f"The largest degree they support is {best}." if best else "They do not support even degree 1."
    raise InputError(
        f"Degree {degree} in {n} dimensions has {math.comb(n + degree, n)} terms and needs {need} rows "
        f"({ROWS_PER_TERM} for each term in each third), but there are {rows}. {remedy}"
    )


def _least_squares(basis: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients (terms, d), the matrix (terms, b) that makes them of h, and residuals for resampling."""
    q, r = np.linalg.qr(basis)
    diagonal = np.abs(np.diag(r))
    if diagonal.min() <= len(basis) * np.finfo(np.float64).eps * diagonal.max():
        raise InputError("The rows of 'z' repeat or depend on each other: too few distinct states for this degree.")
    solver = scipy.linalg.solve_triangular(r, q.T)
    coefficients = solver @ h
    slack = np.maximum(1 - np.square(q).sum(1), 1e-12)
    return coefficients, solver, (h - basis @ coefficients) / np.sqrt(slack)[:, None]
