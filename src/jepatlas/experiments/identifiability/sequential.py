"""Slow feature analysis one function at a time: the slowest one, then the slowest of what is left of the features.

Stage k takes from every feature φ_j what the functions s_1 … s_{k−1} found so far can say about it,

    φ_j ← φ_j − Σ_m B_jm m(s_1, …, s_{k−1}),        m all monomials up to a total degree, B by least squares,

and solves S v = λ (C₀₀ + rI) v for the one leading function. Degree 1 is plain deflation: each function is uncorrelated
with those before, which without a ridge is the eigenproblem itself, solved one vector at a time. A higher degree is
xSFA ("An Extension of Slow Feature Analysis for Nonlinear Blind Source Separation"): the estimates are expanded anew,
and their harmonics and products go, too, so that none can pass for a slow source.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jepatlas.core.linear import ridge as ridge_map
from jepatlas.identifiability.spectral.ladder import polynomials
from jepatlas.identifiability.spectral.transfer import TransferMoments, eigenfunctions

__all__ = ["one_by_one"]

TINY = 1e-9  # variance, against collinear monomials


def one_by_one(
    phi: np.ndarray, phi_next: np.ndarray, others: np.ndarray, dim: int, *, ridge: float, degree: int
) -> np.ndarray:
    """`dim` functions fitted on features of paired views (b, k) and (b, k), as latents (b', dim) of other rows."""
    views = [phi, phi_next, others]
    found = [np.zeros((len(view), 0)) for view in views]
    for _ in range(dim):
        left = _without(views, [polynomials(s, degree) for s in found]) if found[0].shape[1] else views
        moments = TransferMoments.of(left[0], left[1])
        (slowest,) = eigenfunctions(moments, [ridge], 1)
        found = [np.c_[s, (view - moments.mean) @ slowest.vectors] for s, view in zip(found, left, strict=True)]
    return found[-1]


def _without(views: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What is left of the features, by the regression of both views of the pairs."""
    m, phi = np.concatenate(known[:2]), np.concatenate(views[:2])
    explained = ridge_map(m, phi, TINY * len(m))
    return [view - explained.apply(m) + explained.y_mean for view, m in zip(views, known, strict=True)]
