"""Spectral encoder: eigenfunctions as latents h = Vᵀ(φ(x) − mean), and the features φ they are made of.

    φ(x) = (u, q·u_i u_j, q·(u_i² − 1)/√2, f^{−1/2} cos(Ωu/ℓ), f^{−1/2} sin(Ωu/ℓ)),    u = whitened x, or normal scores

The f rows of Ω are N(0, I), orthogonal in blocks (Rahimi & Recht 2007; Yu et al. 2016). A ridge penalises features by
their variance: 1 for each linear one, q² for each quadratic one, 1 for all Fourier features together. So q orders the
degrees: with q = 1 the many products dominate the linear functions (R² .986 where x is a rotation of 8 Gaussian
latents, .9999 with q = .1). Fourier features alone also work there (.9995), but are worse where x is mixed nonlinearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy
import scipy.special
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.moments import Moments
from jepatlas.core.parsing import parse_safetensors

__all__ = ["KNOTS", "Features", "SpectralEncoder", "normal_quantiles", "principal_whitener", "random_frequencies"]

BATCH = 4096
FLOOR = 1e-8  # relative variance below which a direction is rounding error
KNOTS = np.linspace(-3.2, 3.2, 97)
OUTER = 16  # knots that span one unit of the score; the slope beyond the last knot is taken over them


@dataclass(frozen=True)
class Features:
    """φ for rows x. Without frequencies (0 rows) these are the polynomial features alone.

    >>> u = LinearMap(np.eye(2), np.zeros(2), np.zeros(2))
    >>> Features(u, np.zeros((0, 2)), quadratic=1.0)(np.array([[2.0, 3.0]])).round(2)
    array([[2.  , 3.  , 6.  , 2.12, 5.66]])
    """

    whitening: LinearMap
    frequencies: np.ndarray  # (f, d), divided by the length scale
    quadratic: float = 0.0  # q; 0 for no products
    quantiles: np.ndarray | None = None  # (knots, d) of the whitened x for its normal scores; None for x itself

    @property
    def count(self) -> int:
        d = len(self.whitening.weight)
        products = d * (d + 1) // 2 if self.quadratic else 0
        return d + products + 2 * len(self.frequencies)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if x.ndim != 2 or x.shape[1] != len(self.whitening.x_mean):
            raise InputError(f"x must have {len(self.whitening.x_mean)} columns, but has shape {x.shape}.")
        u = self.whitening.apply(x.astype(np.float64))
        if self.quantiles is not None:
            u = _normal_scores(u, self.quantiles)
        parts = [u]
        if self.quadratic:
            parts += _products(u, self.quadratic)
        parts += _waves(u, self.frequencies)
        return np.concatenate(parts, axis=1)


def normal_quantiles(u: np.ndarray) -> np.ndarray:
    """The (knots, d) quantiles of u at the levels where a standard normal has the equidistant values −3.2 … 3.2."""
    return np.quantile(u, scipy.special.ndtr(KNOTS), axis=0)


def _normal_scores(u: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """Transform each column to N(0, 1) by an increasing map, linear beyond the outer knots.

    It undoes warps of single components and limits the influence of heavy tails. Where x is already Gaussian it only
    adds the noise of the quantiles, so its use is decided by the held-out score.
    """
    columns = []
    for column, knots in zip(u.T, quantiles.T, strict=True):
        values, place, count = np.unique(knots, return_inverse=True, return_counts=True)
        inner = np.interp(column, values, np.bincount(place, KNOTS) / count)  # ties share their mean score
        upper = 1 / max(abs(knots[-1] - knots[-OUTER]), 1e-3)
        lower = 1 / max(abs(knots[0] - knots[OUTER - 1]), 1e-3)
        above = np.maximum(column - knots[-1], 0)
        below = np.maximum(knots[0] - column, 0)
        columns.append(inner + upper * above - lower * below)
    return np.stack(columns, axis=1)


def _products(u: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    i, j = np.triu_indices(u.shape[1], 1)
    return weight * u[:, i] * u[:, j], weight * (np.square(u) - 1) / np.sqrt(2)


def _waves(u: np.ndarray, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # torch's sine and cosine are five times faster than numpy's in float64
    angle = torch.from_numpy(u @ frequencies.T)
    scale = max(len(frequencies), 1) ** -0.5
    return (angle.cos() * scale).numpy(), (angle.sin() * scale).numpy()


def random_frequencies(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Rows from N(0, I), orthogonal within each block of `dim`, which reduces the variance of the kernel estimate."""
    blocks = rng.standard_normal((-(-count // dim), dim, dim))
    lengths = np.linalg.norm(rng.standard_normal(blocks.shape), axis=2, keepdims=True)
    return (np.linalg.qr(blocks)[0] * lengths).reshape(-1, dim)[:count]


def principal_whitener(moments: Moments, components: int | None = None) -> LinearMap:
    """Projection onto the leading principal components, scaled to unit variance; constant directions are dropped."""
    covariance = moments.covariance.numpy()
    if not np.isfinite(covariance).all():
        raise InputError("x has values too large to compute variances of. Divide it by a constant.")
    values, vectors = np.linalg.eigh(covariance)
    varies = values > FLOOR * max(values[-1], np.finfo(float).tiny)
    kept = np.flatnonzero(varies)[::-1][:components]
    mean = moments.mean.numpy()
    # a constant column has rounding error proportional to its mean, which is not variance
    rounding = np.square(np.finfo(float).eps * np.abs(mean).max(initial=0)) * moments.count
    if len(kept) == 0 or values[-1] <= rounding:
        raise InputError("x is constant: all rows are equal, so there are no functions to find.")
    return LinearMap((vectors[:, kept] / np.sqrt(values[kept])).T, mean, np.zeros(len(kept)))


@dataclass(frozen=True)
class SpectralEncoder:
    """h = Vᵀ(φ(x) − mean), slowest function first; on the pairs of the fit, h has mean 0 and covariance I.

    `rates` are the correlations on those pairs, which are biased upwards..
    """

    features: Features
    weight: np.ndarray  # (d, k)
    mean: np.ndarray  # (k,)
    rates: np.ndarray  # (d,)

    @property
    def dim(self) -> int:
        return len(self.weight)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Latents (b, d) of rows (b, p), computed in batches because the features are much wider than either."""
        batches = np.array_split(x, max(1, -(-len(x) // BATCH)))
        return np.concatenate([(self.features(batch) - self.mean) @ self.weight.T for batch in batches])

    def save(self, path: Path | str) -> None:
        features = self.features
        whitening = features.whitening
        quantiles = np.zeros((0, len(whitening.weight))) if features.quantiles is None else features.quantiles
        arrays = {
            "whitening": whitening.weight,
            "x_mean": whitening.x_mean,
            "frequencies": features.frequencies,
            "quadratic": np.array([features.quadratic], np.float64),
            "quantiles": quantiles,
            "weight": self.weight,
            "mean": self.mean,
            "rates": self.rates,
        }
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        write_bytes(Path(path), safetensors.numpy.save(contiguous, metadata={"format": "jepatlas.SpectralEncoder"}))

    @classmethod
    def load(cls, path: Path | str) -> SpectralEncoder:
        try:
            arrays = parse_safetensors(Path(path), path)
            whitening = LinearMap(arrays["whitening"], arrays["x_mean"], np.zeros(len(arrays["whitening"])))
            quantiles = arrays["quantiles"] if len(arrays["quantiles"]) else None
            features = Features(whitening, arrays["frequencies"], float(arrays["quadratic"].item()), quantiles)
            loaded = cls(features, arrays["weight"], arrays["mean"], arrays["rates"])
        except (OSError, InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not a saved SpectralEncoder: {error}") from error
        latents = len(loaded.rates)
        count = len(loaded.mean)
        components = len(whitening.weight)
        knots = len(arrays["quantiles"])
        expected = {
            "weight": (latents, count),
            "whitening": (components, len(whitening.x_mean)),
            "frequencies": (len(features.frequencies), components),
            "quantiles": (knots, components),
        }
        fits = all(arrays[name].shape == shape for name, shape in expected.items())
        if not fits or features.count != count or knots not in (0, len(KNOTS)):
            raise InputError(f"{path} is not a saved SpectralEncoder: the shapes of its arrays are inconsistent.")
        return loaded
