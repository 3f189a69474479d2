"""Spectral solver: from pairs to the m slowest functions, with kernel and ridge selected for that m.

Too small a ridge gives functions that fit the sample: fitted eigenvalues near one, held-out ones near zero. Kernel
(length scale, normal scores or not) and ridge are therefore selected by the generalised Rayleigh quotient of the m
leading functions on other pairs (`rayleigh_trace`), which is at most λ₁ + … + λ_m. The best choice depends on m: few
functions need a smaller ridge than many.

A pilot tries every kernel and ridge on a sample, with part of the features. The fit then uses all pairs, with the
pilot's kernel and ridges around the pilot's, as more pairs need less regularisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.moments import Moments
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.spectral.pair_rows import SCORE, SELECT, PairRows, SplitPairs
from jepatlas.identifiability.spectral.spectral_encoder import (
    KNOTS,
    Features,
    SpectralEncoder,
    normal_quantiles,
    principal_whitener,
    random_frequencies,
)
from jepatlas.identifiability.spectral.transfer_operator import TransferMoments, eigenfunctions, rayleigh_trace

__all__ = ["Candidate", "Kernel", "Solution", "SpectralSolver", "SpectrumSettings", "best", "candidates"]

SELECT_BLOCKS = 4
NEARLY_GAUSSIAN = 0.15  # largest distance of quantiles, in standard deviations
QUADRATIC = 0.1
QUADRATIC_UP_TO = 16  # components: 136 products; more would outnumber the Fourier features
RIDGE_FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Ridges tried on all pairs, relative to the pilot's."""
PILOT_FEATURES = 256


@dataclass(frozen=True)
class SpectrumSettings:
    """Settings of the spectral solver."""

    functions: int = 16
    """Number of eigenfunctions: more than the dimensions to be found, or the ladder stays undecided."""
    features: int = 512
    """Number of random Fourier features, in addition to the linear and quadratic ones."""
    components: int = 32
    """Largest number of principal components of x."""
    length_scales: tuple[float, ...] = (0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.6, 2.5)
    """Candidates, in units of whitened x times the square root of the number of components."""
    ridges: tuple[float, ...] = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-1)
    """Candidates; each linear feature has unit variance, and so have all Fourier features together."""
    pilot: int = 10_000
    """Number of pairs on which all combinations are tried."""
    replicates: int = 500
    """Number of bootstrap replicates."""

    def __post_init__(self) -> None:
        for name in ("functions", "features", "components", "pilot", "replicates"):
            check_count(name, getattr(self, name))
        for name in ("length_scales", "ridges"):
            values = getattr(self, name)
            if not values or not all(0 < value < np.inf for value in values):
                raise InputError(f"{name} must contain at least one number, all positive and finite, but is {values}.")


class Kernel(NamedTuple):
    """The smoothness class: functions of whitened x, or of its normal scores, at one length scale."""

    length_scale: float
    scored: bool


@dataclass(frozen=True)
class _Family:
    """The features of every kernel: one whitening, one set of quantiles and frequencies."""

    whitening: LinearMap
    quantiles: np.ndarray  # (knots, d)
    frequencies: np.ndarray  # (f, d)

    @property
    def dim(self) -> int:
        return len(self.whitening.weight)

    def kernels(self, length_scales: Sequence[float]) -> list[Kernel]:
        """Normal scores are tried only where x is not Gaussian; elsewhere they equal x plus noise."""
        middle = np.abs(KNOTS) < 2.5
        gaussian = np.abs(self.quantiles - KNOTS[:, None])[middle].max() < NEARLY_GAUSSIAN
        kernels = [Kernel(scale, False) for scale in length_scales]
        if not gaussian:
            kernels += [Kernel(scale, True) for scale in length_scales]
        return kernels

    def features(self, kernel: Kernel, count: int | None = None) -> Features:
        """Length scales are relative to √d, as distances of whitened rows are."""
        frequencies = self.frequencies[:count] / (kernel.length_scale * np.sqrt(self.dim))
        quadratic = QUADRATIC if self.dim <= QUADRATIC_UP_TO else 0.0
        quantiles = self.quantiles if kernel.scored else None
        return Features(self.whitening, frequencies, quadratic, quantiles)


@dataclass(frozen=True)
class Candidate:
    """Functions fitted with one kernel and ridge: their moments on the blocks of selection pairs."""

    kernel: Kernel
    ridge: float
    covariances: np.ndarray  # (blocks, m, m)
    lagged: np.ndarray  # (blocks, m, m)

    def score(self, leading: int) -> float:
        """Mean over blocks: a function driven by a few outliers can score well by chance, but not in every block."""
        blocks = zip(self.covariances[:, :leading, :leading], self.lagged[:, :leading, :leading], strict=True)
        return float(np.mean([rayleigh_trace(*block) for block in blocks]))


def candidates(
    fit: TransferMoments, select: Sequence[TransferMoments], kernel: Kernel, ridges: Sequence[float], count: int
) -> list[Candidate]:
    """For each ridge, `count` functions fitted on `fit` and evaluated on the blocks of `select`."""
    matrices = [(block.covariance, block.lagged) for block in select]
    found = []
    for ridge, functions in zip(ridges, eigenfunctions(fit, ridges, count), strict=True):
        v = functions.vectors
        covariances = np.stack([v.T @ covariance @ v for covariance, _ in matrices])
        lagged = np.stack([v.T @ lag @ v for _, lag in matrices])
        found.append(Candidate(kernel, ridge, covariances, lagged))
    return found


def best(tried: Iterable[Candidate], leading: int) -> Candidate:
    return max(tried, key=lambda candidate: candidate.score(leading))


@dataclass(frozen=True)
class Solution:
    """An encoder, and the kernel and ridge selected for it."""

    encoder: SpectralEncoder
    length_scale: float
    ridge: float


class SpectralSolver:
    """Tries every kernel and ridge on a sample once; `fit(m)` then uses all pairs with those that suit m functions.

    Weights of pairs enter all moments, fitted and held out. Whitening and quantiles are those of the unweighted rows:
    they only determine the function space.
    """

    def __init__(self, pairs: SplitPairs, settings: SpectrumSettings, seed: int) -> None:
        self.pairs = pairs
        self.settings = settings
        rng = numpy_generator(seed, "spectrum/frequencies")
        whitening = principal_whitener(self._input_moments(), settings.components)
        frequencies = random_frequencies(-(-settings.features // 2), len(whitening.weight), rng)
        sample = pairs.sample(settings.pilot, 0.0, SCORE)
        quantiles = normal_quantiles(whitening.apply(np.concatenate([sample.x, sample.x_next])))
        self._family = _Family(whitening, quantiles, frequencies)
        self._pilot = self._try_all(sample)
        self._moments: dict[Kernel, tuple[TransferMoments, list[TransferMoments]]] = {}

    def _input_moments(self) -> Moments:
        parts = []
        for batch in self.pairs:
            rows = batch.within(0, SCORE)
            parts += [Moments.of(torch.from_numpy(rows.x)), Moments.of(torch.from_numpy(rows.x_next))]
        return reduce(Moments.merge, parts)

    def _try_all(self, sample: PairRows) -> list[Candidate]:
        tried = []
        for kernel in self._family.kernels(self.settings.length_scales):
            fit, select = _moments(self._family.features(kernel, PILOT_FEATURES // 2), sample.batches())
            tried += candidates(fit, select, kernel, self.settings.ridges, self.settings.functions)
        return tried

    def fit(self, count: int) -> Solution:
        """The `count` leading functions, fitted on all pairs except those to score on."""
        most = self._family.features(self._pilot[0].kernel).count
        if not 1 <= count <= most:
            raise InputError(f"The number of functions must be from 1 to {most} for this x, but is {count}.")
        kernel = best(self._pilot, count).kernel
        if kernel not in self._moments:
            self._moments[kernel] = _moments(self._family.features(kernel), self.pairs)
        tried = []
        for known in self._moments:  # kernels selected for other counts may be better on all pairs
            tried += self._refined(known, count)
        chosen = best(tried, count)
        fit, select = self._moments[chosen.kernel]
        whole = reduce(TransferMoments.merge, select, fit)
        (found,) = eigenfunctions(whole, [chosen.ridge], count)
        features = self._family.features(chosen.kernel)
        encoder = SpectralEncoder(features, found.vectors.T, whole.mean, found.values)
        return Solution(encoder, chosen.kernel.length_scale, chosen.ridge)

    def _refined(self, kernel: Kernel, count: int) -> list[Candidate]:
        """Candidates on all pairs, with ridges around the pilot's."""
        pilot = best((candidate for candidate in self._pilot if candidate.kernel == kernel), count)
        fit, select = self._moments[kernel]
        return candidates(fit, select, kernel, [factor * pilot.ridge for factor in RIDGE_FACTORS], count)


def _moments(features: Features, pairs: Iterable[PairRows]) -> tuple[TransferMoments, list[TransferMoments]]:
    """Moments of the rows to fit on, and of each block of the rows to select by."""
    edges = [0.0, *np.linspace(SELECT, SCORE, SELECT_BLOCKS + 1)]
    sums = [TransferMoments.none(features.count) for _ in edges[1:]]
    for batch in pairs:
        for part, (low, high) in enumerate(pairwise(edges)):
            rows = batch.within(low, high)
            if len(rows.x):
                found = TransferMoments.of(features(rows.x), features(rows.x_next), rows.weights)
                sums[part] = sums[part].merge(found)
    select = [block for block in sums[1:] if block.count > 0]  # with few groups, some blocks are empty
    if sums[0].count == 0 or not select:
        raise InputError("'weights' are zero for all pairs to fit on, or for all to select by. Use more even weights.")
    return sums[0], select
