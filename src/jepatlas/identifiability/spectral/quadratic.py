"""The slowest quadratic function of wide latents.

    q(u) = uᵀVu − tr V,    V ← symmetric part of E[q(u') (uuᵀ − I)],  normalised        u: whitened latents

Quadratic forms of white Gaussian u are orthogonal, so this power iteration finds the one with the largest correlation
between views without a matrix of all d(d+1)/2 products. In a Gaussian world it is a harmonic, with correlation at most
ρ₁²; a form that is slower than that is not a harmonic, so the latents are not linear in the state of such a world.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.linear import hold_out, subsample, whitener
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import resampling_units

__all__ = ["slowest_quadratic"]

ROWS = 50_000
ITERATIONS = 25
CLIP = 6.0  # standard deviations: a few outliers would otherwise decide


def slowest_quadratic(
    h: np.ndarray, h_next: np.ndarray, *, groups: np.ndarray | None = None, seed: int = 0, replicates: int = 500
) -> Estimate:
    """Correlation between views of the slowest quadratic form, found on one half of the pairs, scored on the other.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 3))
    >>> found = slowest_quadratic(z, 0.9 * z + np.sqrt(0.19) * noise)
    >>> found.low < 0.81 < found.high
    True
    """
    rows = subsample(np.arange(len(h)), ROWS)
    labels = None if groups is None else groups[rows]
    rng = numpy_generator(seed, "spectrum/quadratic")
    fit, score = hold_out(len(rows), rng, groups=labels)
    white = whitener(np.concatenate([h[rows[fit]], h_next[rows[fit]]]))
    u, u_next = (np.clip(white.apply(view[rows]), -CLIP, CLIP) for view in (h, h_next))
    form = _power_iteration(u[fit].astype(np.float32), u_next[fit].astype(np.float32), rng)
    a, b = (_values(form, view[score]) for view in (u, u_next))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        share = weights / weights.sum()
        mean = share @ (a + b) / 2
        variance = share @ (a**2 + b**2) / 2 - mean**2
        return {"correlation": float((share @ (a * b) - mean**2) / variance) if variance > 0 else float("nan")}

    units = resampling_units(len(score), None if labels is None else labels[score], 1)
    return bootstrap(statistic, len(score), rng, groups=units, replicates=replicates)["correlation"]


def _power_iteration(u: np.ndarray, u_next: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    dim = u.shape[1]
    form = rng.standard_normal((dim, dim)).astype(u.dtype)
    form += form.T
    for _ in range(ITERATIONS):
        form /= np.linalg.norm(form)
        image = np.zeros_like(form)
        for one, other in ((u, u_next), (u_next, u)):
            q = _values(form, other)
            image += (one * (q - q.mean())[:, None]).T @ one
        form = (image + image.T) / 2
    return form / np.linalg.norm(form)


def _values(form: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.einsum("bi,bi->b", u @ form, u)
