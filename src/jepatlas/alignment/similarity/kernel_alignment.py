"""Linear CKA, biased and debiased: the alignment of K = AAᵀ and L = BBᵀ of centred rows.

    CKA = HSIC(K, L) / √(HSIC(K, K) HSIC(L, L))

    biased:    HSIC₀ = tr(KL) = ‖AᵀB‖²
    debiased:  HSIC₁ = ‖AᵀB‖² − n/(n−2) Σ pᵢqᵢ + Σp Σq / ((n−1)(n−2)),        pᵢ = ‖aᵢ‖², qᵢ = ‖bᵢ‖²

HSIC₁ is n(n−3) times the unbiased estimator of Song et al. ("Feature Selection via Dependence Maximization"), which
leaves out the diagonals. Centred rows have K1 = 0, so the diagonals contribute only squared norms of rows, and no
matrix (n, n) is needed if rows outnumber columns. For independent Gaussians with 500 rows and 384 columns, the biased
form is 0.43 and the debiased form 0. Both are invariant under rotations and a common scale, not under other maps.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.paired import centred, check_pairs
from jepatlas.core.linear_moments import PairMoments

__all__ = ["cka", "cka_debiased", "cka_of"]

BLOCK = 1024  # rows or columns of a product that are in memory at once
ROUNDING = 1e-12  # share of the biased variance below which a debiased one is rounding


def cka(a: np.ndarray, b: np.ndarray) -> float:
    """Biased linear CKA, the most published form, from 0 to 1; NaN for constant latents.

    >>> a = np.random.default_rng(0).standard_normal((100, 3))
    >>> round(cka(a, 7 * a[:, ::-1]), 12)
    1.0
    """
    a, b = (centred(x) for x in check_pairs(a, b))
    variances = squared_products(a, a) * squared_products(b, b)
    return _share(squared_products(a, b), variances)


def cka_of(moments: PairMoments) -> float:
    """Biased linear CKA from streamed moments of pairs."""
    hsic_aa, hsic_bb, hsic_ab = (float(np.sum(block**2)) for block in (moments.xx, moments.yy, moments.xy))
    return _share(hsic_ab, hsic_aa * hsic_bb)


def cka_debiased(a: np.ndarray, b: np.ndarray) -> float:
    """Debiased linear CKA: about 0, possibly negative, for unrelated latents.

    NaN for constant latents, and if all rows are equally far from one another.
    """
    a, b = (centred(x) for x in check_pairs(a, b, fewest=4))
    (hsic_aa, aa), (hsic_bb, bb), (hsic_ab, _) = (_unbiased(*pair) for pair in ((a, a), (b, b), (a, b)))
    varied = hsic_aa > ROUNDING * aa and hsic_bb > ROUNDING * bb
    return _share(hsic_ab, hsic_aa * hsic_bb if varied else 0.0)


def squared_products(a: np.ndarray, b: np.ndarray) -> float:
    """tr(AAᵀBBᵀ), as ‖AᵀB‖² over features or as Σ(AAᵀ ∘ BBᵀ) over rows, whichever is cheaper."""
    if a.shape[1] * b.shape[1] <= len(a) ** 2:
        blocks = (a.T @ b[:, first : first + BLOCK] for first in range(0, b.shape[1], BLOCK))
        return float(sum(np.vdot(product, product) for product in blocks))
    rows = (slice(first, first + BLOCK) for first in range(0, len(a), BLOCK))
    return float(sum(np.vdot(a[block] @ a.T, b[block] @ b.T) for block in rows))


def _unbiased(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """n(n−3) HSIC₁, debiased and biased."""
    n, product = len(a), squared_products(a, b)
    p, q = np.square(a).sum(1), np.square(b).sum(1)
    diagonal = n / (n - 2) * (p @ q) - p.sum() * q.sum() / ((n - 1) * (n - 2))
    return float(product - diagonal), product


def _share(value: float, variances: float) -> float:
    return float(value / np.sqrt(variances)) if variances > 0 else float("nan")
