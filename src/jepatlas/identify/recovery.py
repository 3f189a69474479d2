"""Recovery: how far latents h and true states z are one linear, and one orthogonal, map apart.

Everything is held out: maps are fitted on one half of the samples and scored on the other. h and z may have
different widths. Nothing here knows who trained the encoder.
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.linear import Split, least_squares, procrustes
from jepatlas.base.records import Estimate
from jepatlas.base.stats import bootstrap
from jepatlas.identify.covariance import WeightedCovariance

__all__ = ["linear_response", "recovery", "recovery_null", "rotation_error"]


def recovery(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """Held-out estimates with group-bootstrap intervals:

    r2                  R² of z from h by least squares
    r2_inverse          R² of h from z
    procrustes          E‖h − Qz‖², means removed, for the best orthogonal Q
    orthogonality       ‖WᵀW − I‖/‖I‖ of the map z → h in whitened coordinates (zero for any linear h)
    orthogonality_raw   the same in the latents' own coordinates (zero for h = Qz only)

    WᵀW is estimated by the W of one half against the W of the other: within one half, as many rows as dimensions
    would fit a perfect map between things that have nothing to do with each other. Both are whitened by the first.
    """
    fit, score = split
    h_score, z_score, n = h[score], z[score], z.shape[1]
    z_hat, h_hat = least_squares(h[fit], z[fit]).apply(h_score), least_squares(z[fit], h[fit]).apply(z_score)
    residuals = np.stack([_squares(z_score - z_hat), _squares(h_score - h_hat), _misfit(h, z, split)], 1)
    fitted = WeightedCovariance(np.concatenate([z[fit], h[fit]], axis=1))(np.ones(len(fit)))
    raw_fit, z_root, h_root = _response(fitted, n), _power(fitted[:n, :n], 0.5), _power(fitted[n:, n:], -0.5)
    covariance = WeightedCovariance(np.concatenate([z_score, h_score], axis=1))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        joint = covariance(weights)
        raw = _response(joint, n)
        miss_z, miss_h, misfit = weights @ residuals / weights.sum()
        return {
            "r2": _explained(miss_z, joint[:n, :n]),
            "r2_inverse": _explained(miss_h, joint[n:, n:]),
            "procrustes": float(misfit),
            "orthogonality": _orthogonality(h_root @ raw_fit @ z_root, h_root @ raw @ z_root),
            "orthogonality_raw": _orthogonality(raw_fit, raw),
        }

    held = None if groups is None else groups[score]
    return bootstrap(statistic, len(score), rng, groups=held, replicates=replicates)


def rotation_error(
    h: np.ndarray,
    z: np.ndarray,
    split: Split,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    replicates: int = 500,
) -> dict[str, Estimate]:
    """`procrustes` alone, where the rest of `recovery` is not asked for."""
    misfit = _misfit(h, z, split)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"procrustes": float(weights @ misfit / weights.sum())}

    held = None if groups is None else groups[split.score]
    return bootstrap(statistic, len(misfit), rng, groups=held, replicates=replicates)


def recovery_null(h: np.ndarray, z: np.ndarray, split: Split, rng: np.random.Generator) -> dict[str, float]:
    """The same statistics where states are dealt to latents at random: what there is to see in nothing."""
    dealt = z[rng.permutation(len(z))]
    estimates = recovery(h, dealt, split, rng, replicates=1)
    return {name: estimate.value for name, estimate in estimates.items()}


def linear_response(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares map x → y on (weighted) rows: raw Σ_yx Σ_xx⁻¹, and whitened Σ_yy^{−½} Σ_yx Σ_xx^{−½}."""
    n, weights = x.shape[1], np.ones(len(x)) if weights is None else weights
    joint = WeightedCovariance(np.concatenate([x, y], axis=1))(weights)
    raw = _response(joint, n)
    return raw, _power(joint[n:, n:], -0.5) @ raw @ _power(joint[:n, :n], 0.5)


def _response(joint: np.ndarray, n: int) -> np.ndarray:
    return joint[n:, :n] @ _power(joint[:n, :n], -1.0)


def _power(matrix: np.ndarray, exponent: float, floor: float = 1e-12) -> np.ndarray:
    """A power of a symmetric matrix on its range; dead directions stay dead."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > floor * max(values[-1], np.finfo(float).tiny)
    return (vectors * np.where(kept, np.where(kept, values, 1.0) ** exponent, 0.0)) @ vectors.T


def _orthogonality(one: np.ndarray, other: np.ndarray) -> float:
    """‖WᵀW − I‖_F / ‖I‖_F from two independent estimates of W."""
    product, eye = one.T @ other, np.eye(one.shape[1])
    return float(np.linalg.norm((product + product.T) / 2 - eye) / np.linalg.norm(eye))


def _misfit(h: np.ndarray, z: np.ndarray, split: Split) -> np.ndarray:
    """‖h − Qz‖² of each held-out row."""
    turn = procrustes(z[split.fit], h[split.fit])
    return _squares(h[split.score] - turn.apply(z[split.score]))


def _explained(residual: float, covariance: np.ndarray) -> float:
    """R², pooled over dimensions; NaN where there was nothing to explain."""
    total = np.trace(covariance)
    return float(1 - residual / total) if total > 0 else float("nan")


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.square(rows).sum(1)
