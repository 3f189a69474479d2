"""Hermite decomposition of a map h(z) under z ~ N(0, I): how much of it is linear, quadratic, …

    ψ_k(z) = Π_i He_{k_i}(z_i) / √(k_i!)      E ψ_k ψ_l = 1[k = l]      |k| = Σ_i k_i
    h = Σ_k c_k ψ_k + rest                    v_d = Σ_{|k|=d} ‖c_k‖²    E‖h − E h‖² = Σ_{d≥1} v_d

The coefficients are least-squares fits on three disjoint thirds of the samples. Squared coefficients of one fit would
count their noise as variance, so v_d is the product of coefficients from different thirds: unbiased, hence slightly
negative now and then where there is nothing. The variance beyond the last degree is the product, on the rows of one
third, of the residuals of the other two fits.

Noise in h causes no bias. Much variance beyond the last degree biases the estimate by that variance × terms / rows,
and heavy-tailed high powers make intervals from few rows too short: increase the degree until little lies beyond."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.linalg

from jepatlas.core.arrays import group_numbers
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.linear import whitener
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.preconditions.sliced_distance import distance_from_gaussian
from jepatlas.identifiability.resampling import Halves
from jepatlas.identifiability.validation import check_matrices, check_standard

__all__ = ["HermiteFit", "degree_variances", "degree_verdicts", "hermite_basis", "largest_degree", "multi_indices"]

PARTS = 3
ROWS_PER_TERM = 2
"""Rows of a third for each coefficient: with fewer, the fit describes its noise more than h."""
VERDICT_MAX_DEGREE = 5
VERDICT_MAX_TERMS = 200
VERDICT_ROWS = 4000
NOT_GAUSSIAN = 0.05
"""Sliced distance from N(0, I) above which states do not count as Gaussian."""


def degree_variances(
    h: np.ndarray,
    z: np.ndarray,
    degree: int,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Estimates with group-bootstrap intervals, for latents h (b, d) that are a function of states z (b, n):

    degree_1 … degree_D   v_d, summed over the latents
    beyond                variance of all higher degrees, and of whatever is not a function of z
    total                 their sum, E‖h − E h‖²
    nonlinear             total − v_1, which Theorem 3 bounds by D
    """
    fit = HermiteFit(h, z, degree, rng, groups)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        energies = fit.energies(weights)
        beyond = fit.beyond(weights)
        variances = {f"degree_{d}": float(energies[fit.degrees == d].sum()) for d in range(1, degree + 1)}
        total = sum(variances.values()) + beyond
        return variances | {"beyond": beyond, "total": total, "nonlinear": total - variances["degree_1"]}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)


def multi_indices(n: int, degree: int) -> np.ndarray:
    """All k in ℕⁿ with |k| ≤ degree, sorted by degree: (n+degree choose degree) rows.

    >>> multi_indices(2, 2).tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    indices = []
    for d in range(degree + 1):
        for chosen in itertools.combinations_with_replacement(range(n), d):
            indices.append(np.bincount(np.array(chosen, dtype=int), minlength=n))
    return np.array(indices)


def hermite_basis(z: np.ndarray, degree: int) -> np.ndarray:
    """ψ_k(z) for the k of `multi_indices`, as columns; orthonormal under N(0, I)."""
    z = z.astype(np.float64)
    powers = [np.ones_like(z), z]  # He_k/√k! by its own recurrence, because k! overflows
    for k in range(1, degree):
        powers.append((z * powers[k] - math.sqrt(k) * powers[k - 1]) / math.sqrt(k + 1))
    indices = multi_indices(z.shape[1], degree)
    basis = np.ones((len(z), len(indices)), order="F")
    for term, index in enumerate(indices):
        for i in np.flatnonzero(index):
            basis[:, term] *= powers[index[i]][:, i]
    return basis


def largest_degree(n: int, rows: int) -> int:
    """The largest total degree in n dimensions that `rows` rows support; 0 if not even linear terms.

    >>> largest_degree(2, 120), largest_degree(100, 120)
    (4, 0)
    """
    degree = 0
    while ROWS_PER_TERM * math.comb(n + degree + 1, n) <= rows // PARTS:
        degree += 1
    return degree


class HermiteFit:
    """Coefficients of h on each third of the samples, and their first-order change under resampling.

    c(w) ≈ c + (ΨᵀΨ)⁻¹ Ψᵀ(w−1)r: refitting would be slow, and with few rows per term much noisier than the fit itself.
    r is the residual divided by √(1 − leverage), because a fit is closer to its own rows than to others.
    """

    coefficients: np.ndarray  # (3, terms, d)
    indices: np.ndarray  # (terms, n)
    degrees: np.ndarray  # (terms,)
    parts: np.ndarray  # (b,): the third that each row belongs to

    def __init__(
        self, h: np.ndarray, z: np.ndarray, degree: int, rng: np.random.Generator, groups: np.ndarray | None = None
    ) -> None:
        check_matrices(groups, h=h, z=z)
        check_standard("z", z)
        self.parts = _thirds(len(h), rng, groups)
        _check_support(z.shape[1], degree, self.parts)
        self.indices = multi_indices(z.shape[1], degree)
        self.degrees = self.indices.sum(1)
        h = h.astype(np.float64)
        basis = hermite_basis(z, degree)
        self._rows = [np.flatnonzero(self.parts == part) for part in range(PARTS)]
        fits = [_least_squares(basis[rows], h[rows]) for rows in self._rows]
        self.coefficients = np.stack([coefficients for coefficients, _, _ in fits])
        self._influence = [(solver, residual) for _, solver, residual in fits]
        self._unexplained = np.empty(len(h))
        for part, rows in enumerate(self._rows):
            one, other = (h[rows] - basis[rows] @ c for c in np.delete(self.coefficients, part, axis=0))
            self._unexplained[rows] = np.sum(one * other, axis=1)

    def energies(self, weights: np.ndarray | None = None) -> np.ndarray:
        """‖c_k‖² of each term, (terms,): the mean product of coefficients from different thirds."""
        c = self.coefficients if weights is None else self._resampled(weights)
        return (np.square(c.sum(0)) - np.square(c).sum(0)).sum(1) / (PARTS * (PARTS - 1))

    def beyond(self, weights: np.ndarray | None = None) -> float:
        """Variance not explained by the basis. To first order it does not depend on the coefficients."""
        return float(np.average(self._unexplained, weights=weights))

    def _resampled(self, weights: np.ndarray) -> np.ndarray:
        shifts = []
        for rows, (solver, residual) in zip(self._rows, self._influence, strict=True):
            shifts.append(solver @ ((weights[rows] - 1)[:, None] * residual))
        return self.coefficients + np.stack(shifts)


def _thirds(rows: int, rng: np.random.Generator, groups: np.ndarray | None) -> np.ndarray:
    labels = group_numbers(groups, rows)
    count = int(labels.max()) + 1
    if count < PARTS:
        raise InputError(f"A Hermite decomposition needs at least {PARTS} groups of samples, but there are {count}.")
    return (rng.permutation(count) % PARTS)[labels]


def _check_support(n: int, degree: int, parts: np.ndarray) -> None:
    check_count("degree", degree)
    rows = PARTS * int(np.bincount(parts, minlength=PARTS).min())
    best = largest_degree(n, rows)
    if degree <= best:
        return
    terms = math.comb(n + degree, n)
    remedy = f"The largest supported degree is {best}." if best else "Not even degree 1 is supported."
    raise InputError(
        f"Degree {degree} in {n} dimensions has {terms} terms and needs {PARTS * ROWS_PER_TERM * terms} rows "
        f"({ROWS_PER_TERM} per term in each third), but there are {rows}. {remedy}"
    )


def _least_squares(basis: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients (terms, d), the matrix (terms, b) that gives them from h, and residuals for resampling."""
    q, r = np.linalg.qr(basis)
    diagonal = np.abs(np.diag(r))
    if diagonal.min() <= len(basis) * np.finfo(np.float64).eps * diagonal.max():
        raise InputError("'z' has too few distinct rows for this degree: the basis functions are linearly dependent.")
    solver = scipy.linalg.solve_triangular(r, q.T)
    coefficients = solver @ h
    slack = np.maximum(1 - np.square(q).sum(1), 1e-12)
    return coefficients, solver, (h - basis @ coefficients) / np.sqrt(slack)[:, None]


def degree_verdicts(halves: Halves, seed: int, replicates: int = 500) -> list[Verdict]:
    """Shares of the latents' variance by Hermite degree: `degree_1` … and `degree_beyond`, without threshold.

    A rotation has all its variance at degree 1. The shares need Gaussian states and enough rows; otherwise there is
    only `degree_1`, with value NaN and the reason.
    """
    some = halves.subsampled(VERDICT_ROWS, numpy_generator(seed, "degrees/rows"))
    z = whitener(some.z).apply(some.z)
    variance = float(np.trace(np.atleast_2d(np.cov(some.h, rowvar=False))))
    labels = np.arange(len(z)) if some.groups is None else np.unique(some.groups, return_inverse=True)[1]
    degree = _verdict_degree(z.shape[1], len(z), int(labels.max()) + 1)
    obstacle = _obstacle(z, labels, degree, variance, seed)
    if obstacle:
        return [_undefined(f"{obstacle}.", len(z))]
    h = some.h / math.sqrt(variance)
    try:
        rng = numpy_generator(seed, "degrees")
        found = degree_variances(h, z, degree, rng, groups=some.groups, replicates=replicates)
    except InputError as error:  # groups of very unequal size, or too few distinct states
        return [_undefined(str(error), len(z))]
    verdicts = []
    for d in range(1, degree + 1):
        verdicts.append(
            Verdict.judge(
                f"degree_{d}",
                found[f"degree_{d}"],
                direction="higher" if d == 1 else "lower",
                good=f"Share of the latents' variance that has degree {d} in the state.",
            )
        )
    beyond = f"Share of the latents' variance above degree {degree}, or not a function of the state."
    verdicts.append(Verdict.judge("degree_beyond", found["beyond"], direction="lower", good=beyond))
    return verdicts


def _undefined(reason: str, rows: int) -> Verdict:
    estimate = Estimate.undefined(rows)
    return Verdict.judge("degree_1", estimate, direction="higher", good=f"Not computed: {reason}")


def _verdict_degree(n: int, rows: int, groups: int) -> int:
    """The largest degree that the rows support and that is quick to compute; 0 with fewer than 3 groups."""
    if groups < PARTS:
        return 0
    supported = largest_degree(n, rows if groups == rows else rows // 2)  # thirds of whole groups may be unequal
    quick = max(d for d in range(1, VERDICT_MAX_DEGREE + 1) if d == 1 or math.comb(n + d, d) <= VERDICT_MAX_TERMS)
    return min(supported, quick)


def _obstacle(z: np.ndarray, labels: np.ndarray, degree: int, variance: float, seed: int) -> str:
    """Why the shares are not defined; empty if they are."""
    if degree < 2:
        return f"{len(z)} rows in {z.shape[1]} dimensions do not support polynomials of degree 2"
    if not variance > 0:
        return "the latents are constant"
    if not z.std(0).all():
        return "the states do not vary in every direction"
    distance = distance_from_gaussian(z, labels, seed)(np.ones(len(z)))
    limit = max(NOT_GAUSSIAN, 1 / math.sqrt(labels.max() + 1))  # at least twice the null's 99% quantile
    return f"the states are not Gaussian (distance {distance:.2f})" if distance > limit else ""
