"""The transfer operator on a family of functions φ, and its leading eigenfunctions.

    C₀₀ = ½ E[φφᵀ + φ'φ'ᵀ]        S = ½ E[φφ'ᵀ + φ'φᵀ]        both about the common mean of φ and φ'

S v = λ C₀₀ v: λ is the correlation of the function vᵀφ between x and x'. C₀₀ − S = ½ E[(φ−φ')(φ−φ')ᵀ], so the largest λ
belong to the slowest functions; for a reversible process they are its eigenfunctions (Noé & Nüske 2013). The symmetric
form keeps every λ in [−1, 1]. The antisymmetric part ½ E[φφ'ᵀ − φ'φᵀ] is tested in `held_out.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.linalg

__all__ = ["Eigenfunctions", "TransferMoments", "eigenfunctions", "rayleigh_trace"]

RANK = 1e-12


@dataclass(frozen=True)
class TransferMoments:
    """Sums over pairs; moments of parts merge to those of the whole. A batch costs two symmetric products."""

    count: float  # number of pairs, or the sum of their weights
    total: np.ndarray  # (k,)  Σ (φ + φ')
    plus: np.ndarray  # (k, k)  Σ (φ + φ')(φ + φ')ᵀ
    minus: np.ndarray  # (k, k)  Σ (φ − φ')(φ − φ')ᵀ

    @classmethod
    def of(cls, phi: np.ndarray, phi_next: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Moments of pairs, each counted once or by its weight (b,)."""
        both = phi + phi_next
        step = phi - phi_next
        if weights is None:
            return cls(len(phi), both.sum(0), both.T @ both, step.T @ step)
        total = weights @ both
        root = np.sqrt(weights)[:, None]
        both = root * both
        step = root * step
        return cls(float(weights.sum()), total, both.T @ both, step.T @ step)

    @classmethod
    def none(cls, features: int) -> Self:
        return cls(0, np.zeros(features), np.zeros((features, features)), np.zeros((features, features)))

    def merge(self, other: TransferMoments) -> TransferMoments:
        return TransferMoments(
            self.count + other.count, self.total + other.total, self.plus + other.plus, self.minus + other.minus
        )

    @property
    def mean(self) -> np.ndarray:
        return self.total / (2 * self.count)

    @property
    def covariance(self) -> np.ndarray:
        """C₀₀."""
        return (self.plus + self.minus) / (4 * self.count) - np.outer(self.mean, self.mean)

    @property
    def lagged(self) -> np.ndarray:
        """S."""
        return (self.plus - self.minus) / (4 * self.count) - np.outer(self.mean, self.mean)


@dataclass(frozen=True)
class Eigenfunctions:
    """ψ = Vᵀ(φ − mean), with covariance I on the pairs they were fitted on, slowest first."""

    values: np.ndarray  # (m,)  correlations on the pairs they were fitted on: biased upwards
    vectors: np.ndarray  # (k, m)


def eigenfunctions(moments: TransferMoments, ridges: Sequence[float], count: int) -> list[Eigenfunctions]:
    """The leading solutions of S v = λ (C₀₀ + rI) v for each ridge r, from one decomposition of C₀₀.

    The ridge selects the functions; their values are then computed without it (Rayleigh–Ritz in their span), because a
    ridge in the denominator would shrink them.
    """
    covariance = moments.covariance
    lagged = moments.lagged
    scales, basis = scipy.linalg.eigh(covariance)
    varies = scales > RANK * scales[-1]  # with few distinct x, features are dependent: no more functions than the rank
    scales = scales[varies]
    basis = basis[:, varies]
    rotated = basis.T @ lagged @ basis
    first = max(len(scales) - count, 0)
    found = []
    for ridge in ridges:
        root = 1 / np.sqrt(scales + ridge)
        problem = root[:, None] * rotated * root
        leading = scipy.linalg.eigh(problem, subset_by_index=[first, len(scales) - 1], driver="evr")[1]
        found.append(_rayleigh_ritz(basis @ (root[:, None] * leading), covariance, lagged))
    return found


def _rayleigh_ritz(span: np.ndarray, covariance: np.ndarray, lagged: np.ndarray) -> Eigenfunctions:
    values, turn = scipy.linalg.eigh(span.T @ lagged @ span, span.T @ covariance @ span)
    vectors = (span @ turn)[:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(0)[None], axis=0)
    return Eigenfunctions(values[::-1], vectors * np.where(largest < 0, -1, 1))


def rayleigh_trace(covariance: np.ndarray, lagged: np.ndarray) -> float:
    """tr C₀₀⁻¹S of m functions on held-out pairs: the generalised Rayleigh quotient.

    In expectation it is at most λ₁ + … + λ_m, with equality for the true eigenfunctions (McGibbon & Pande 2015), so
    overfitted eigenvalues cannot increase it. It is invariant to linear mixing of the functions.
    """
    try:
        return float(np.trace(scipy.linalg.solve(covariance, lagged, assume_a="pos")))
    except np.linalg.LinAlgError:  # functions that are linearly dependent on held-out pairs
        return -np.inf
