"""Canonical correlation analysis: CCA, SVCCA and PWCCA.

Canonical correlations ρ₁ ≥ ρ₂ ≥ … of two sets of latents, and weighted means of them:

    A = U_A Σ_A V_Aᵀ,  B = U_B Σ_B V_Bᵀ  (centred rows),        ρ = singular values of U_AᵀU_B

    CCA     mean ρᵢ, invariant under invertible maps of either side
    SVCCA   mean ρᵢ of the leading principal directions with 99% of each side's variance
    PWCCA   Σ αᵢρᵢ / Σ αᵢ,   αᵢ = Σ_j |⟨hᵢ, a_j⟩|, with the variates hᵢ and the coordinates a_j of A

From "SVCCA: Singular Vector Canonical Correlation Analysis for Deep Learning Dynamics and Interpretability" and
"Insights on Representational Similarity in Neural Networks with Canonical Correlation". None is debiased: with as many
columns as rows every ρ is 1. PWCCA is not symmetric: its weights come from A, so it is invariant under invertible maps
of B only. If several ρ are equal, as happens with few rows, variates and weights are not unique.
"""

from __future__ import annotations

import numpy as np

from jepatlas.alignment.paired import centred, check_pairs
from jepatlas.core.errors import InputError

__all__ = ["pwcca", "svcca"]


def svcca(a: np.ndarray, b: np.ndarray, kept: float = 0.99) -> float:
    """Mean canonical correlation of the leading principal directions that hold a share `kept` of the variance."""
    if not 0 < kept <= 1:
        raise InputError(f"'kept', a share of the variance, must be in (0, 1], but {kept} was given.")
    a, b = check_pairs(a, b)
    return _mean(_correlations(_basis(centred(a), kept), _basis(centred(b), kept))[1])


def pwcca(a: np.ndarray, b: np.ndarray) -> float:
    """Mean canonical correlation, weighted by how much of `a` each canonical variate of `a` explains."""
    a, b = check_pairs(a, b)
    x = centred(a)
    variates, correlations = _correlations(_basis(x), _basis(centred(b)))
    weights = np.abs(variates.T @ x).sum(1)
    return float(weights @ correlations / weights.sum()) if len(correlations) else float("nan")


def _basis(x: np.ndarray, kept: float = 1.0) -> np.ndarray:
    """Orthonormal columns (n, r) that span the columns of x, or those of its leading principal directions."""
    u, sigma, _ = np.linalg.svd(x, full_matrices=False)
    rank = int((sigma > sigma[0] * max(x.shape) * np.finfo(np.float64).eps).sum())
    if kept == 1 or rank == 0:
        return u[:, :rank]
    shares = np.cumsum(np.square(sigma[:rank]))
    return u[:, : int(np.searchsorted(shares, kept * shares[-1] * (1 - 1e-12))) + 1]


def _correlations(u_a: np.ndarray, u_b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Canonical variates of the first side (n, r), and canonical correlations (r,)."""
    turn, correlations, _ = np.linalg.svd(u_a.T @ u_b, full_matrices=False)
    return u_a @ turn, np.minimum(correlations, 1.0)


def _mean(correlations: np.ndarray) -> float:
    return float(correlations.mean()) if len(correlations) else float("nan")
