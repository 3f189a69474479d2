"""Recovery: how far latents h and true states z are one linear, and one orthogonal, map apart.

Everything is held out: maps are fitted on one half of the samples and scored on the other. h and z may have
different widths. Nothing here knows who trained the encoder.
"""

from __future__ import annotations

import numpy as np

from jepatlas.base.linear import Split, least_squares, orthogonality_error, procrustes, r2
from jepatlas.base.records import Estimate
from jepatlas.base.stats import bootstrap

__all__ = ["linear_response", "recovery", "recovery_null"]


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
    """
    fit, score = split
    to_z, to_h, turn = least_squares(h[fit], z[fit]), least_squares(z[fit], h[fit]), procrustes(z[fit], h[fit])
    h_score, z_score = h[score], z[score]
    z_hat, h_hat = to_z.apply(h_score), to_h.apply(z_score)
    misfit = np.square(h_score - turn.apply(z_score)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        raw, whitened = linear_response(z_score, h_score, weights)
        return {
            "r2": r2(z_score, z_hat, weights),
            "r2_inverse": r2(h_score, h_hat, weights),
            "procrustes": float(weights @ misfit / weights.sum()),
            "orthogonality": orthogonality_error(whitened),
            "orthogonality_raw": orthogonality_error(raw),
        }

    return bootstrap(
        statistic, len(score), rng, groups=None if groups is None else groups[score], replicates=replicates
    )


def recovery_null(h: np.ndarray, z: np.ndarray, split: Split, rng: np.random.Generator) -> dict[str, float]:
    """The same statistics where states are dealt to latents at random: what there is to see in nothing."""
    dealt = z[rng.permutation(len(z))]
    estimates = recovery(h, dealt, split, rng, replicates=1)
    return {name: estimate.value for name, estimate in estimates.items()}


def linear_response(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares map x → y on weighted rows: raw Σ_yx Σ_xx⁻¹, and whitened Σ_yy^{−½} Σ_yx Σ_xx^{−½}."""
    joint = np.concatenate([x, y], axis=1)
    centred = joint - np.average(joint, axis=0, weights=weights)
    covariance = (centred * weights[:, None]).T @ centred / weights.sum()
    n = x.shape[1]
    xx, yx, yy = covariance[:n, :n], covariance[n:, :n], covariance[n:, n:]
    return yx @ _power(xx, -1.0), _power(yy, -0.5) @ yx @ _power(xx, -0.5)


def _power(matrix: np.ndarray, exponent: float, floor: float = 1e-12) -> np.ndarray:
    """A power of a symmetric matrix on its range; dead directions stay dead."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > floor * max(values[-1], np.finfo(float).tiny)
    return (vectors * np.where(kept, np.where(kept, values, 1.0) ** exponent, 0.0)) @ vectors.T
