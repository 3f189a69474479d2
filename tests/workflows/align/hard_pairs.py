"""Pairs of latents whose plain held-out R² misleads, with the reason, and controls that must stay without a warning."""

from __future__ import annotations

import numpy as np

__all__ = [
    "binary_factor",
    "collapsed",
    "independent_series",
    "linear",
    "mismatched",
    "near_copies",
    "one_outlier",
    "shared_column",
    "warped",
]

Pair = tuple[np.ndarray, np.ndarray]


def linear(seed: int, rows: int = 600, dim: int = 16, noise: float = 0.3, tails: float = 0.0) -> Pair:
    """Two noisy linear images of the same states; with `tails`, noise has Student's t distribution."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((rows, dim))
    return _noisy(rng, z, dim, noise, tails), _noisy(rng, z, dim, noise, tails)


def _noisy(rng: np.random.Generator, z: np.ndarray, dim: int, noise: float, tails: float = 0.0) -> np.ndarray:
    drawn = rng.standard_t(tails, (len(z), dim)) if tails else rng.standard_normal((len(z), dim))
    return z @ rng.standard_normal((z.shape[1], dim)) / np.sqrt(z.shape[1]) + noise * drawn


def near_copies(seed: int, *, objects: int = 40, views: int = 20, dim: int = 64, noise: float = 0.15) -> Pair:
    """Unrelated latents of the same objects, each seen several times, in random order."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(objects), views))
    a, b = (rng.standard_normal((objects, dim))[of] + noise * rng.standard_normal((len(of), dim)) for _ in range(2))
    return a, b


def independent_series(seed: int, *, rows: int = 1000, dim: int = 16, memory: float = 0.995) -> Pair:
    """Unrelated slow series: h_t = memory · h_{t−1} + noise."""
    rng = np.random.default_rng(seed)
    series = np.sqrt(1 - memory**2) * rng.standard_normal((rows, 2 * dim))
    series[0] /= np.sqrt(1 - memory**2)
    for step in range(1, rows):
        series[step] += memory * series[step - 1]
    return series[:, :dim], series[:, dim:]


def one_outlier(seed: int, size: float = 1e4) -> Pair:
    """One row of the target is wrong by a large factor."""
    a, b = linear(seed, noise=0.05)
    b[np.random.default_rng(seed).integers(len(b))] *= size
    return a, b


def mismatched(seed: int, share: float = 0.3) -> Pair:
    """A share of the pairs are permuted among themselves."""
    a, b = linear(seed, noise=0.1)
    wrong = np.random.default_rng(seed).permutation(len(b))[: round(share * len(b))]
    b[wrong] = b[np.roll(wrong, 1)]
    return a, b


def binary_factor(seed: int, rows: int = 500, dim: int = 16) -> Pair:
    """Only one large binary factor is shared; all other directions are unrelated."""
    rng = np.random.default_rng(seed)
    factor = rng.choice([-1.0, 1.0], rows)[:, None]
    a, b = (factor * 4.8 * rng.standard_normal(dim) + rng.standard_normal((rows, dim)) for _ in range(2))
    return a, b


def collapsed(seed: int, rows: int = 600, dim: int = 16) -> Pair:
    """Both models keep one direction of the state."""
    rng = np.random.default_rng(seed)
    state = rng.standard_normal((rows, 1))
    a, b = (state @ rng.standard_normal((1, dim)) + 1e-3 * rng.standard_normal((rows, dim)) for _ in range(2))
    return a, b


def warped(seed: int, rows: int = 500, dim: int = 8) -> Pair:
    """b = w(Qa), with the same steep curve for every coordinate."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((rows, dim))
    turned = a @ np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return a, np.exp(1.5 * turned)


def shared_column(seed: int, rows: int = 600, dim: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unrelated latents that both follow the light, in different ways; and the light."""
    rng = np.random.default_rng(seed)
    light = rng.uniform(0, 1, rows)
    curves = np.stack([light, np.sin(6 * light), np.cos(3 * light)], 1)
    a, b = (3 * curves @ rng.standard_normal((3, dim)) + rng.standard_normal((rows, dim)) for _ in range(2))
    return a, b, light
