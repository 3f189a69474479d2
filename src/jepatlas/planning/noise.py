"""Noise over time: white, or coloured with the power spectrum 1 / f^β, and of variance 1 at each time.

Actions that stay as they are for a while lead further than white noise, which cancels itself out: β = 2 is a
random walk's spectrum, β = 0 is white. The lowest frequency, 0, has the power of the one above it (1/t).

All starts of a batch are given the same noise. So a start is planned for in a batch exactly as it is alone, and
differences between starts are differences of the starts; their errors are not independent, though.

Reference: "Sample-efficient Cross-Entropy Method for Real-time Planning".
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

__all__ = ["coloured_noise"]


def coloured_noise(count: int, like: Tensor, colour: float, generator: Generator) -> Tensor:
    """(k, t, a) for sequences (b, t, a), from its spectrum: a Gaussian at each frequency, scaled by f^(−β/2)."""
    horizon, dim = like.shape[1:]
    place = {"generator": generator, "device": generator.device, "dtype": like.dtype}
    if colour == 0 or horizon == 1:
        return torch.randn(count, horizon, dim, **place).to(like.device)
    scale = _amplitudes(horizon, colour).to(device=generator.device, dtype=like.dtype)
    waves = torch.randn(2, count, dim, len(scale), **place)
    # a wave of frequency 0, or of the highest one where t is even, has one part only: with all of its power in it
    alone = [0, -1] if horizon % 2 == 0 else [0]
    waves[0, ..., alone] *= math.sqrt(2)
    waves[1, ..., alone] = 0
    spectrum = torch.complex(waves[0] * scale, waves[1] * scale)
    return torch.fft.irfft(spectrum, n=horizon).transpose(1, 2).to(like.device)


def _amplitudes(horizon: int, colour: float) -> Tensor:
    """f^(−β/2) at the frequencies of t times, scaled so that their sum has variance 1 at each time."""
    frequencies = torch.fft.rfftfreq(horizon, dtype=torch.float64)
    frequencies[0] = frequencies[1]
    raw = frequencies ** (-colour / 2)
    parts = torch.full_like(raw, 4.0)
    parts[0] = 2.0
    if horizon % 2 == 0:
        parts[-1] = 2.0
    return raw * horizon / (parts * raw.square()).sum().sqrt()
