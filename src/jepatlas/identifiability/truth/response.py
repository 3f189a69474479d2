"""The linear response of y to x, from their covariance: Σ_yx Σ_xx⁻¹, on the directions of x that vary."""

from __future__ import annotations

import numpy as np

from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = ["linear_response", "power", "range_root", "response"]


def linear_response(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares map x → y on (weighted) rows: raw Σ_yx Σ_xx⁻¹, and whitened Σ_yy^{−½} Σ_yx Σ_xx^{−½}."""
    n, weights = x.shape[1], np.ones(len(x)) if weights is None else weights
    joint = WeightedCovariance(np.concatenate([x, y], axis=1))(weights)
    raw = response(joint, n)
    return raw, power(joint[n:, n:], -0.5) @ raw @ power(joint[:n, :n], 0.5)


def response(joint: np.ndarray, n: int) -> np.ndarray:
    """The raw map from the first n coordinates to the others."""
    return joint[n:, :n] @ power(joint[:n, :n], -1.0)


def power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric matrix on its range; dead directions stay dead."""
    values, vectors = _range(matrix)
    return (vectors * values**exponent) @ vectors.T


def range_root(matrix: np.ndarray) -> np.ndarray:
    """R with RRᵀ = matrix, and a column for each direction that varies."""
    values, vectors = _range(matrix)
    return vectors * np.sqrt(values)


def _range(matrix: np.ndarray, floor: float = 1e-12) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > floor * max(values[-1], np.finfo(float).tiny)
    return values[kept], vectors[:, kept]
