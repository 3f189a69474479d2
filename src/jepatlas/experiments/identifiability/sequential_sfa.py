"""Slow feature analysis one function at a time: deflation, and xSFA."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.linear import ridge as ridge_map
from jepatlas.identifiability.spectral.ladder import polynomials
from jepatlas.identifiability.spectral.transfer_operator import TransferMoments, eigenfunctions

__all__ = ["extract_one_by_one"]

MIN_VARIANCE = 1e-9  # penalty against collinear monomials


def extract_one_by_one(
    phi: np.ndarray, phi_next: np.ndarray, others: np.ndarray, dim: int, *, ridge: float, degree: int
) -> np.ndarray:
    """Slow feature analysis one function at a time.

    Stage k regresses every feature φ_j on all monomials m of the functions s_1 … s_{k−1} up to a total degree,

        φ_j ← φ_j − Σ_m B_jm m(s_1, …, s_{k−1})

    and solves S v = λ (C₀₀ + rI) v for the leading function of the residual. Degree 1 is plain deflation: without a
    ridge it is the eigenproblem, solved one vector at a time. A higher degree is xSFA ("An Extension of Slow Feature
    Analysis for Nonlinear Blind Source Separation"): harmonics and products of the estimates are removed too, so none
    can be mistaken for a slow source.

    Fits `dim` functions on features of paired views (b, k) and (b, k), and returns the latents (b', dim) of `others`.
    """
    views = [phi, phi_next, others]
    found = [np.zeros((len(view), 0)) for view in views]
    for _ in range(dim):
        remaining = _residuals(views, [polynomials(s, degree) for s in found]) if found[0].shape[1] else views
        moments = TransferMoments.of(remaining[0], remaining[1])
        (slowest,) = eigenfunctions(moments, [ridge], 1)
        new = [(view - moments.mean) @ slowest.vectors for view in remaining]
        found = [np.c_[s, column] for s, column in zip(found, new, strict=True)]
    return found[-1]


def _residuals(views: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Residuals of the features, regressed on both views of the pairs."""
    m, phi = np.concatenate(known[:2]), np.concatenate(views[:2])
    explained = ridge_map(m, phi, MIN_VARIANCE * len(m))
    return [view - explained.apply(m) + explained.y_mean for view, m in zip(views, known, strict=True)]
