"""The spectral solver: from pairs to the m best functions, with kernel and ridge chosen for that m."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.moments import Moments
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.spectral.features import normal_quantiles, principal_whitener, random_frequencies
from jepatlas.identifiability.spectral.pair_chunks import PairChunks, Places
from jepatlas.identifiability.spectral.selection import SCORE, Candidate, Family, Kernel, best, candidates, moments_of
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.transfer import TransferMoments, eigenfunctions

__all__ = ["Solution", "SpectralSolver", "SpectrumSettings"]

AROUND = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Ridges to try on all pairs, relative to the pilot's: more pairs want less."""
PILOT_FEATURES = 256


@dataclass(frozen=True)
class SpectrumSettings:
    """How a spectrum is computed."""

    functions: int = 16
    """Eigenfunctions to compute: more than the dimensions to be found, or the ladder stays undecided."""
    features: int = 512
    """Random Fourier features, beside the linear and quadratic ones."""
    components: int = 32
    """Principal components of x to look at, at most."""
    length_scales: tuple[float, ...] = (0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.6, 2.5)
    """To choose from: in whitened x, times the root of the number of components."""
    ridges: tuple[float, ...] = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-1)
    """To choose from: each linear feature has variance one, the Fourier features have it together."""
    pilot: int = 10_000
    """Pairs on which all combinations are tried."""
    replicates: int = 500
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        for name in ("functions", "features", "components", "pilot", "replicates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        for name in ("length_scales", "ridges"):
            values = getattr(self, name)
            if not values or not all(0 < value < np.inf for value in values):
                raise InputError(f"{name} must be positive numbers, at least one, but {values} was given.")


@dataclass(frozen=True)
class Solution:
    """The functions, and what was chosen for them."""

    encoder: SpectralEncoder
    length_scale: float
    ridge: float


class SpectralSolver:
    """Tries every kernel and ridge on a sample once; then `fit(m)` reads all pairs at the one that suits m.

    Weights of pairs enter every moment, fitted or held out. The features' own units, whitening and quantiles, are
    those of the rows as they are: they only say in which functions to look.
    """

    def __init__(self, pairs: PairChunks, settings: SpectrumSettings, seed: int) -> None:
        self.pairs, self.settings = pairs, settings
        parts = (Moments.of(torch.from_numpy(view)) for rows in pairs for view in _views(rows.within(0, SCORE)))
        whitening = principal_whitener(reduce(Moments.merge, parts), settings.components)
        rng = numpy_generator(seed, "spectrum/frequencies")
        frequencies = random_frequencies(-(-settings.features // 2), len(whitening.weight), rng)
        sample = pairs.sample(settings.pilot, 0.0, SCORE)
        quantiles = normal_quantiles(whitening.apply(np.concatenate(_views(sample))))
        self.family = Family(whitening, quantiles, frequencies)
        self.pilot = self._pilot(sample.cut())
        self.read: dict[Kernel, tuple[TransferMoments, list[TransferMoments]]] = {}

    def _pilot(self, rows: list[Places]) -> list[Candidate]:
        settings, tried = self.settings, []
        for kernel in self.family.kernels(settings.length_scales):
            fit, select = moments_of(self.family.at(kernel, PILOT_FEATURES // 2), rows)
            tried += candidates(fit, select, kernel, settings.ridges, settings.functions)
        return tried

    def fit(self, count: int) -> Solution:
        """The `count` leading functions, fitted on all pairs but those to score on."""
        most = self.family.at(self.pilot[0].kernel).count
        if not 1 <= count <= most:
            raise InputError(f"{count} functions were asked for, but x gives from 1 to {most}.")
        chosen = best((candidate for kernel in self._kernels(count) for candidate in self._tried(kernel, count)), count)
        fit, select = self.read[chosen.kernel]
        whole = reduce(TransferMoments.merge, select, fit)
        (found,) = eigenfunctions(whole, [chosen.ridge], count)
        encoder = SpectralEncoder(self.family.at(chosen.kernel), found.vectors.T, whole.mean, found.values)
        return Solution(encoder, chosen.kernel.length_scale, chosen.ridge)

    def _kernels(self, count: int) -> list[Kernel]:
        """The pilot's kernel, and any that was read before: all pairs may prefer it after all."""
        kernel = best(self.pilot, count).kernel
        if kernel not in self.read:
            self.read[kernel] = moments_of(self.family.at(kernel), self.pairs)
        return list(self.read)

    def _tried(self, kernel: Kernel, count: int) -> list[Candidate]:
        pilot = best((candidate for candidate in self.pilot if candidate.kernel == kernel), count)
        return candidates(*self.read[kernel], kernel, [factor * pilot.ridge for factor in AROUND], count)


def _views(rows: Places) -> tuple[np.ndarray, np.ndarray]:
    return rows.x, rows.x_next
