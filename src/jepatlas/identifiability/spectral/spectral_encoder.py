"""Eigenfunctions as an encoder: a frozen record of plain arrays, the same for random features and for SFA."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.core.errors import InputError
from jepatlas.core.files import write_bytes
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.spectral.features import KNOTS, Features
from jepatlas.identifiability.spectral.pair_chunks import ROWS

__all__ = ["SpectralEncoder"]


@dataclass(frozen=True)
class SpectralEncoder:
    """h = Vᵀ(φ(x) − mean): slowest function first; on the pairs of the fit h has mean 0 and covariance I.

    `rates` are the correlations on those pairs. They are biased upwards: see `held_out_rates`.
    """

    features: Features
    weight: np.ndarray  # (d, k)
    mean: np.ndarray  # (k,)
    rates: np.ndarray  # (d,)

    @property
    def dim(self) -> int:
        return len(self.weight)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Latents (b, d) of rows (b, p), a piece at a time: the features are far wider than either."""
        pieces = np.array_split(x, max(1, -(-len(x) // ROWS)))
        return np.concatenate([(self.features(piece) - self.mean) @ self.weight.T for piece in pieces])

    def save(self, path: Path | str) -> None:
        arrays = {name: np.ascontiguousarray(array) for name, array in self._arrays().items()}
        write_bytes(Path(path), safetensors.numpy.save(arrays, metadata={"format": "jepatlas.SpectralEncoder"}))

    def _arrays(self) -> dict[str, np.ndarray]:
        whitening, features = self.features.whitening, self.features
        return {
            "whitening": whitening.weight,
            "x_mean": whitening.x_mean,
            "frequencies": features.frequencies,
            "quadratic": np.array([features.quadratic], np.float64),
            "quantiles": np.zeros((0, len(whitening.weight))) if features.quantiles is None else features.quantiles,
            "weight": self.weight,
            "mean": self.mean,
            "rates": self.rates,
        }

    @classmethod
    def load(cls, path: Path | str) -> SpectralEncoder:
        try:
            arrays = safetensors.numpy.load_file(path)
            whitening = LinearMap(arrays["whitening"], arrays["x_mean"], np.zeros(len(arrays["whitening"])))
            features = Features(whitening, arrays["frequencies"], float(arrays["quadratic"].item()))
            features = replace(features, quantiles=arrays["quantiles"] if len(arrays["quantiles"]) else None)
            loaded = cls(features, arrays["weight"], arrays["mean"], arrays["rates"])
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} is not a saved SpectralEncoder: {error}") from error
        d, k, p = len(loaded.rates), len(loaded.mean), len(whitening.x_mean)
        u = len(whitening.weight)
        wanted = {
            "weight": (d, k),
            "whitening": (u, p),
            "frequencies": (len(features.frequencies), u),
            "quantiles": (len(arrays["quantiles"]), u),
        }
        if (
            features.count != k
            or len(arrays["quantiles"]) not in (0, len(KNOTS))
            or any(arrays[name].shape != shape for name, shape in wanted.items())
        ):
            raise InputError(f"{path} is not a saved SpectralEncoder: the shapes of its arrays do not fit together.")
        return loaded
