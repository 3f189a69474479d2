"""What the raw input gives without any learning: the controls that every alignment result stands beside.

    PCA of raw input      h = Vᵀ(x − mean), V the leading principal directions of the rows to fit on
    random network        h = W₃ relu(W₂ relu(W₁ x + b₁) + b₂), all drawn at random

Two cameras on one road align because their pixels do. Only what a model aligns beyond these is the model's merit;
and of that, only what it aligns beyond its own network before training is training's.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import subsample

__all__ = ["pca_control", "untrained_control"]

FIT_ROWS = 2000
"""Principal directions are decided by at most so many rows, evenly spread: that bounds memory and time."""
CHUNK = 512
"""Rows that are turned from bytes into floats at once."""
HIDDEN = 512


def pca_control(raw: np.ndarray, width: int, fit_rows: np.ndarray) -> np.ndarray:
    """Principal components (n, width) of images (n, H, W[, C]) or plain rows (n, p), fitted on `fit_rows` only.

    Where the input or the rows to fit on have fewer dimensions than `width`, there are only as many components.
    """
    _check(raw, width)
    if len(fit_rows) < 2 or fit_rows.min() < 0 or fit_rows.max() >= len(raw):
        raise InputError(
            f"The raw input has {len(raw)} rows, but {len(fit_rows)} rows to fit on, up to number "
            f"{fit_rows.max(initial=-1)}, were given. It needs one row for each latent."
        )
    rows = _flat(raw[fit_rows[_spread(len(fit_rows))]])
    if not (rows != rows[0]).any():
        raise InputError("The raw input is the same in all rows to fit on: it has no principal directions.")
    mean, directions = _principal(rows, width)
    return np.concatenate([(_flat(part) - mean) @ directions for part in _chunks(raw)])


def _principal(rows: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean (p,) and leading principal directions (p, width), from the smaller of XᵀX and XXᵀ: exact, and quick."""
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
    """Latents (n, width) of a random network with two hidden layers; each of two models gets a generator of its own.

    Images are standardised as a whole, columns of plain rows one by one, since those may have different units.
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
    """He's initialisation keeps the size of activations; biases bend what few inputs there may be."""
    weight = rng.standard_normal((d_in, d_out), dtype=np.float32) * np.sqrt(2 / d_in, dtype=np.float32)
    return weight, rng.standard_normal(d_out, dtype=np.float32)


def _moments(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and scale of every input (p,), from a sample of the rows; ones where nothing varies."""
    rows = _flat(raw[_spread(len(raw))])
    whole = None if raw.ndim > 2 else 0
    mean, scale = rows.mean(whole), rows.std(whole)
    return np.broadcast_to(mean, rows.shape[1]), np.broadcast_to(np.where(scale > 0, scale, 1), rows.shape[1])


def _spread(n: int) -> np.ndarray:
    return subsample(np.arange(n), FIT_ROWS)


def _chunks(raw: np.ndarray) -> list[np.ndarray]:
    return [raw[start : start + CHUNK] for start in range(0, len(raw), CHUNK)]


def _flat(images: np.ndarray) -> np.ndarray:
    """Images as rows of float32; plain rows, which may have offsets of any size, in float64."""
    return images.reshape(len(images), -1).astype(np.float32 if images.ndim > 2 else np.float64)


def _check(raw: np.ndarray, width: int) -> None:
    if raw.ndim < 2 or 0 in raw.shape:
        raise InputError(
            f"Raw input must be images (rows, height, width[, channels]) or plain rows (rows, columns), but its shape "
            f"is {raw.shape}."
        )
    if width < 1:
        raise InputError(f"A control needs at least 1 dimension, but {width} was given.")
    check_finite("raw", raw)
