"""Linear R² that theory predicts for a world of generalised normals: Corr(f(z), z)² of the first eigenfunction f.

The optimum whitens and is slowest, so each latent is f of a coordinate, up to a rotation. f depends on the dynamics:

    Langevin    the Sturm–Liouville problem of the density
    copula      Φ⁻¹∘F
    additive    siblings a, b = ρz + √(1−ρ²)η have the joint density J(a, b) = ∫ p(z) k(z, a) k(z, b) dz and the
                marginal q; √q f is the second eigenfunction of J / √(q(a) q(b)), and √q the first

The law of additive noise is not stationary, so the study's pairs follow q and not p. No prediction exists for α ≤ 1:
the spectrum is continuous, and slow functions concentrate ever further out in the tails.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import scipy  # its parts are loaded on first use

from jepatlas.identifiability import sturm_liouville_generalised_normal
from jepatlas.worlds.generalised_normal import hermite_variances, scale

__all__ = ["predicted_affinity"]

POINTS = 801
DEPTH = 40.0  # log p at the ends of the grid is −DEPTH
WIDER = 1.15
STRETCH = 3.0  # cells are wider in the tails


@cache
def predicted_affinity(law: str, alpha: float, rho: float) -> float:
    """Linear R² at the optimum of "Langevin", "copula" or "additive" pairs; NaN where none is predicted.

    >>> [round(predicted_affinity(law, 4.0, 0.95), 3) for law in ("Langevin", "copula", "additive")]
    [0.984, 0.987, 0.985]
    """
    if alpha == 2:
        return 1.0
    if law == "copula":
        return dict(hermite_variances(alpha))[1]
    if alpha <= 1:
        return math.nan
    return sturm_liouville_generalised_normal(alpha, 1).affinity if law == "Langevin" else _additive(alpha, rho)


def _additive(alpha: float, rho: float) -> float:
    end = WIDER * scale(alpha) * DEPTH ** (1 / alpha)
    z = end * np.sinh(STRETCH * np.linspace(-1, 1, POINTS)) / np.sinh(STRETCH)
    width = np.gradient(z)
    renewal = math.sqrt(1 - rho**2)
    step = np.exp(-((np.abs(z - rho * z[:, None]) / (renewal * scale(alpha))) ** alpha)) * width  # k(z, a) da
    step /= step.sum(1, keepdims=True)
    mass = np.exp(-((np.abs(z) / scale(alpha)) ** alpha)) * width
    mass /= mass.sum()
    view = mass @ step  # q(a) da
    root = np.sqrt(view)
    joint = step.T @ (mass[:, None] * step) / np.outer(root, root)
    _, vectors = scipy.linalg.eigh(joint, subset_by_index=[POINTS - 2, POINTS - 1])
    f = vectors[:, 0] / root
    centred = z - view @ z
    return float((view @ (f * centred)) ** 2 / ((view @ f**2 - (view @ f) ** 2) * (view @ centred**2)))
