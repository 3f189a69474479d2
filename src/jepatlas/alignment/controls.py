"""Controls without learning, from the raw input, for comparison with alignments.

    PCA of raw input      h = Vᵀ(x − mean), V the leading principal directions of the rows to fit on
    random network        h = W₃ relu(W₂ relu(W₁ x + b₁) + b₂), all drawn at random

Two cameras on one road align because their pixels do. Only alignment beyond these controls is due to the model, and
only alignment beyond its own untrained network is due to training.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import subsample

__all__ = ["pca_control", "untrained_control"]

FIT_ROWS = 2000
"""Largest number of rows, evenly spread, that principal directions are computed from."""
CHUNK = 512
"""Rows that are converted to floats at once."""
HIDDEN = 512


def pca_control(raw: np.ndarray, width: int, fit_rows: np.ndarray) -> np.ndarray:
    """Principal components (n, width) of images (n, H, W[, C]) or plain rows (n, p), fitted on `fit_rows` only.

    There are fewer components than `width` if the input or `fit_rows` have fewer dimensions.
    """
    _check(raw, width)
    if len(fit_rows) < 2 or fit_rows.min() < 0 or fit_rows.max() >= len(raw):
        raise InputError(
            f"'fit_rows' must have at least 2 rows below {len(raw)}, the number of rows of the raw input, but has "
            f"{len(fit_rows)} up to {fit_rows.max(initial=-1)}. Raw input needs one row for each latent."
        )
    rows = _flat(raw[fit_rows[_spread(len(fit_rows))]])
    if not (rows != rows[0]).any():
        raise InputError("The raw input is constant over the rows to fit on, so it has no principal directions.")
    mean, directions = _principal(rows, width)
    return np.concatenate([(_flat(part) - mean) @ directions for part in _chunks(raw)])


def _principal(rows: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (p,) and leading principal directions (p, width), from the smaller of XᵀX and XXᵀ."""
    mean = rows.mean(0, dtype=np.float64)
    centred = rows - mean
    wide = centred.shape[1] > len(centred)
    gram = centred @ centred.T if wide else centred.T @ centred
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=[max(len(gram) - width, 0), len(gram) - 1])
    kept = values > len(gram) * np.finfo(np.float64).eps * values[-1]
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    directions = centred.T @ (vectors / np.sqrt(values)) if wide else vectors
    return mean.astype(rows.dtype), directions.astype(rows.dtype)


def untrained_control(raw: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """Latents (n, width) of a random network with two hidden layers; use different generators for two models.

    Images are standardised as a whole. Columns of plain rows are standardised separately, as units may differ.
    """
    _check(raw, width)
    mean, scale = _moments(raw)
    first, second, last = _layer(rng, mean.size, HIDDEN), _layer(rng, HIDDEN, HIDDEN), _layer(rng, HIDDEN, width)

    def encode(x: np.ndarray) -> np.ndarray:
        for weight, bias in (first, second):
            x = np.maximum(x @ weight + bias, 0)
        return x @ last[0]

    return np.concatenate([encode((_flat(part) - mean) / scale) for part in _chunks(raw)])


def _layer(rng: np.random.Generator, d_in: int, d_out: int) -> tuple[np.ndarray, np.ndarray]:
    """He initialisation, with random biases so that few inputs still give nonlinear features."""
    weight = rng.standard_normal((d_in, d_out), dtype=np.float32) * np.sqrt(2 / d_in, dtype=np.float32)
    return weight, rng.standard_normal(d_out, dtype=np.float32)


def _moments(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale (p,) of the inputs, from a sample of rows; the scale of constant inputs is 1."""
    rows = _flat(raw[_spread(len(raw))])
    whole = None if raw.ndim > 2 else 0
    mean, scale = rows.mean(whole), rows.std(whole)
    return np.broadcast_to(mean, rows.shape[1]), np.broadcast_to(np.where(scale > 0, scale, 1), rows.shape[1])


def _spread(n: int) -> np.ndarray:
    return subsample(np.arange(n), FIT_ROWS)


def _chunks(raw: np.ndarray) -> list[np.ndarray]:
    return [raw[start : start + CHUNK] for start in range(0, len(raw), CHUNK)]


def _flat(images: np.ndarray) -> np.ndarray:
    """Images as rows of float32; plain rows, which may have large offsets, as float64."""
    return images.reshape(len(images), -1).astype(np.float32 if images.ndim > 2 else np.float64)


def _check(raw: np.ndarray, width: int) -> None:
    if raw.ndim < 2 or 0 in raw.shape:
        raise InputError(
            "'raw' must be images (rows, height, width[, channels]) or plain rows (rows, columns), but its shape is "
            f"{raw.shape}."
        )
    if width < 1:
        raise InputError(f"'width' must be at least 1, but {width} was given.")
    check_finite("raw", raw)
