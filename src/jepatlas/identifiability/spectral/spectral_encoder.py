"""Eigenfunctions as an encoder: a frozen record of plain arrays, for random features and for SFA."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.spectral.features import KNOTS, Features

__all__ = ["SpectralEncoder"]

BATCH = 4096


@dataclass(frozen=True)
class SpectralEncoder:
    """h = Vᵀ(φ(x) − mean), slowest function first; on the pairs of the fit, h has mean 0 and covariance I.

    `rates` are the correlations on those pairs, which are biased upwards. See `held_out_rates`.
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
            arrays = safetensors.numpy.load_file(path)
            whitening = LinearMap(arrays["whitening"], arrays["x_mean"], np.zeros(len(arrays["whitening"])))
            quantiles = arrays["quantiles"] if len(arrays["quantiles"]) else None
            features = Features(whitening, arrays["frequencies"], float(arrays["quadratic"].item()), quantiles)
            loaded = cls(features, arrays["weight"], arrays["mean"], arrays["rates"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
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
