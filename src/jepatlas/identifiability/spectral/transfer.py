"""The transfer operator on a family of functions φ, from sums over pairs: what eigenfunctions are computed from.

    C₀₀ = ½ E[φφᵀ + φ'φ'ᵀ]        S = ½ E[φφ'ᵀ + φ'φᵀ]        both about the common mean of φ and φ'

S v = λ C₀₀ v: λ is the correlation that the function vᵀφ keeps from x to x'. C₀₀ − S = ½ E[(φ−φ')(φ−φ')ᵀ], so the
largest λ are the slowest functions, and for a reversible process they are its eigenfunctions (Noé & Nüske 2013).
The symmetric form keeps every λ in [−1, 1]; what it drops, ½ E[φφ'ᵀ − φ'φᵀ], is measured in `held_out.py`.
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
    """Sums over pairs; sums of parts merge to those of the whole. Two symmetric products are all that a chunk costs."""

    count: float  # of pairs, or the sum of their weights
    total: np.ndarray  # (k,)  Σ (φ + φ')
    plus: np.ndarray  # (k, k)  Σ (φ + φ')(φ + φ')ᵀ
    minus: np.ndarray  # (k, k)  Σ (φ − φ')(φ − φ')ᵀ

    @classmethod
    def of(cls, phi: np.ndarray, phi_next: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """With weights (b,) a pair counts as often as its weight says."""
        both, step = phi + phi_next, phi - phi_next
        if weights is None:
            return cls(len(phi), both.sum(0), both.T @ both, step.T @ step)
        total, root = weights @ both, np.sqrt(weights)[:, None]
        both, step = root * both, root * step
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
    """The leading solutions of S v = λ (C₀₀ + rI) v for each ridge r, at the price of one decomposition of C₀₀.

    The ridge chooses the functions; their values are then taken without it (Rayleigh–Ritz in their span), because a
    ridge in the denominator would only shrink them.
    """
    covariance, lagged = moments.covariance, moments.lagged
    scales, basis = scipy.linalg.eigh(covariance)
    varies = scales > RANK * scales[-1]  # features of few distinct x are dependent: no more functions than their rank
    scales, basis = scales[varies], basis[:, varies]
    turned = basis.T @ lagged @ basis
    first = max(len(scales) - count, 0)
    found = []
    for ridge in ridges:
        root = 1 / np.sqrt(scales + ridge)
        problem = root[:, None] * turned * root
        leading = scipy.linalg.eigh(problem, subset_by_index=[first, len(scales) - 1], driver="evr")[1]
        found.append(_ritz(basis @ (root[:, None] * leading), covariance, lagged))
    return found


def _ritz(span: np.ndarray, covariance: np.ndarray, lagged: np.ndarray) -> Eigenfunctions:
    values, turn = scipy.linalg.eigh(span.T @ lagged @ span, span.T @ covariance @ span)
    vectors = (span @ turn)[:, ::-1]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(0)[None], axis=0)
    return Eigenfunctions(values[::-1], vectors * np.where(largest < 0, -1, 1))


def rayleigh_trace(covariance: np.ndarray, lagged: np.ndarray) -> float:
    """tr C₀₀⁻¹S of m functions on pairs they were not fitted on: the generalised Rayleigh quotient.

    In expectation it is at most λ₁ + … + λ_m, with equality for the true eigenfunctions (McGibbon & Pande 2015), so a
    spurious eigenvalue cannot raise it. It does not change when the functions are mixed linearly.
    """
    try:
        return float(np.trace(scipy.linalg.solve(covariance, lagged, assume_a="pos")))
    except np.linalg.LinAlgError:  # functions that are dependent on other pairs are worth nothing
        return -np.inf
