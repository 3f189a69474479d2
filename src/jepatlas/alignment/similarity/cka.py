"""Linear CKA, the centred kernel alignment of K = AAᵀ and L = BBᵀ for centred rows, biased and debiased.

    CKA = HSIC(K, L) / √(HSIC(K, K) HSIC(L, L))

    biased:    HSIC₀ = tr(KL) = ‖AᵀB‖²
    debiased:  HSIC₁ = ‖AᵀB‖² − n/(n−2) Σ pᵢqᵢ + Σp Σq / ((n−1)(n−2)),        pᵢ = ‖aᵢ‖², qᵢ = ‖bᵢ‖²

HSIC₁ is the unbiased estimator of Song and others ("Feature Selection via Dependence Maximization"), n(n−3) times: that
one leaves out the diagonals, and centred rows have K1 = 0, so all that the diagonals contribute are the squared norms
of rows. No matrix of n × n is made where rows outnumber columns. The biased form finds .43 between independent
Gaussians of 500 rows and 384 columns; the debiased one finds 0. Both are invariant under rotations and a common scale,
not under GL: in common coordinates they say something else.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.paired import centred, check_pairs

__all__ = ["cka", "cka_debiased"]

BLOCK = 1024  # rows or columns of a product that are in memory at once
ROUNDING = 1e-12  # a debiased variance below this share of the biased one is nothing but rounding


def cka(a: np.ndarray, b: np.ndarray) -> float:
    """The biased, most published form, from 0 to 1; NaN where latents are constant.

    >>> a = np.random.default_rng(0).standard_normal((100, 3))
    >>> round(cka(a, 7 * a[:, ::-1]), 12)
    1.0
    """
    a, b = (centred(x) for x in check_pairs(a, b))
    variances = squared_products(a, a) * squared_products(b, b)
    return _share(squared_products(a, b), variances)


def cka_debiased(a: np.ndarray, b: np.ndarray) -> float:
    """From the unbiased estimators of all three HSICs: about 0, also negative, for what is unrelated.

    NaN where latents are constant, or do not vary more than the rows of a simplex, all equally far from one another.
    """
    a, b = (centred(x) for x in check_pairs(a, b, fewest=4))
    (hsic_aa, aa), (hsic_bb, bb), (hsic_ab, _) = (_unbiased(*pair) for pair in ((a, a), (b, b), (a, b)))
    varied = hsic_aa > ROUNDING * aa and hsic_bb > ROUNDING * bb
    return _share(hsic_ab, hsic_aa * hsic_bb if varied else 0.0)


def squared_products(a: np.ndarray, b: np.ndarray) -> float:
    """tr(AAᵀBBᵀ): as ‖AᵀB‖² over features, or as Σ(AAᵀ ∘ BBᵀ) over rows, whichever is smaller."""
    if a.shape[1] * b.shape[1] <= len(a) ** 2:
        blocks = (a.T @ b[:, first : first + BLOCK] for first in range(0, b.shape[1], BLOCK))
        return float(sum(np.vdot(product, product) for product in blocks))
    rows = (slice(first, first + BLOCK) for first in range(0, len(a), BLOCK))
    return float(sum(np.vdot(a[block] @ a.T, b[block] @ b.T) for block in rows))


def _unbiased(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """n(n−3) HSIC₁, and what it is without the correction."""
    n, product = len(a), squared_products(a, b)
    p, q = np.square(a).sum(1), np.square(b).sum(1)
    diagonal = n / (n - 2) * (p @ q) - p.sum() * q.sum() / ((n - 1) * (n - 2))
    return float(product - diagonal), product


def _share(value: float, variances: float) -> float:
    return float(value / np.sqrt(variances)) if variances > 0 else float("nan")
