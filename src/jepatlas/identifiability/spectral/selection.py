"""Kernel (length scale, scores or not) and ridge by what they are worth on other pairs, never by fitted eigenvalues.

Too little ridge gives functions that remember the sample: fitted eigenvalues near one, held-out ones near zero. The
generalised Rayleigh quotient of the m leading functions on other pairs (`rayleigh_trace`) is at most λ₁ + … + λ_m, so
such functions lose by it. The best choice depends on m: few functions want a smaller ridge than many.

First a pilot: every kernel and ridge, on a sample and with a part of the features. Then all pairs of the fit,
with the pilot's kernel and ridges around the pilot's, as more pairs want less of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.identifiability.spectral.features import KNOTS, Features
from jepatlas.identifiability.spectral.pair_chunks import Places
from jepatlas.identifiability.spectral.transfer import TransferMoments, eigenfunctions, rayleigh_trace

__all__ = ["SCORE", "SELECT", "Candidate", "Family", "Kernel", "best", "candidates", "moments_of"]

SELECT, SCORE = 0.6, 0.75
"""Places of rows: below SELECT to fit, then to select, from SCORE on to score."""

BLOCKS = 4
NEARLY_GAUSSIAN = 0.15  # largest distance of quantiles, in standard deviations
QUADRATIC = 0.1
QUADRATIC_UP_TO = 16  # components; 136 products, and as many again would outnumber the Fourier features


class Kernel(NamedTuple):
    """Which functions are smooth: those of whitened x or of its normal scores, at one length scale."""

    length_scale: float
    scored: bool


@dataclass(frozen=True)
class Family:
    """The features of every kernel: one whitening, one set of quantiles and frequencies."""

    whitening: LinearMap
    quantiles: np.ndarray  # (knots, d)
    frequencies: np.ndarray  # (f, d)

    @property
    def dim(self) -> int:
        return len(self.whitening.weight)

    def kernels(self, length_scales: Sequence[float]) -> list[Kernel]:
        """Scores are tried only where x is not Gaussian: where it is, they are x itself and noise."""
        middle = np.abs(KNOTS) < 2.5
        gaussian = np.abs(self.quantiles - KNOTS[:, None])[middle].max() < NEARLY_GAUSSIAN
        return [
            Kernel(scale, scored) for scored in ((False,) if gaussian else (False, True)) for scale in length_scales
        ]

    def at(self, kernel: Kernel, count: int | None = None) -> Features:
        """A length scale is relative to √d, as distances of whitened rows are."""
        frequencies = self.frequencies[:count] / (kernel.length_scale * np.sqrt(self.dim))
        quadratic = QUADRATIC if self.dim <= QUADRATIC_UP_TO else 0.0
        return Features(self.whitening, frequencies, quadratic, self.quantiles if kernel.scored else None)


@dataclass(frozen=True)
class Candidate:
    """Functions fitted with one kernel and ridge: their moments on the blocks of pairs to select by."""

    kernel: Kernel
    ridge: float
    covariances: np.ndarray  # (blocks, m, m)
    lagged: np.ndarray  # (blocks, m, m)

    def score(self, leading: int) -> float:
        """The mean over blocks, not the value of all rows: a function that lives on a few far rows can be right there
        by luck, but not in every block."""
        blocks = zip(self.covariances[:, :leading, :leading], self.lagged[:, :leading, :leading], strict=True)
        return float(np.mean([rayleigh_trace(*block) for block in blocks]))


def candidates(
    fit: TransferMoments, select: Sequence[TransferMoments], kernel: Kernel, ridges: Sequence[float], count: int
) -> list[Candidate]:
    """One for each ridge: `count` functions of the pairs to fit on, seen on the blocks of pairs to select by."""
    matrices = [(block.covariance, block.lagged) for block in select]
    tried = []
    for ridge, found in zip(ridges, eigenfunctions(fit, ridges, count), strict=True):
        v = found.vectors
        covariances, lagged = (np.stack([v.T @ block[i] @ v for block in matrices]) for i in (0, 1))
        tried.append(Candidate(kernel, ridge, covariances, lagged))
    return tried


def best(tried: Iterable[Candidate], leading: int) -> Candidate:
    return max(tried, key=lambda candidate: candidate.score(leading))


def moments_of(features: Features, pairs: Iterable[Places]) -> tuple[TransferMoments, list[TransferMoments]]:
    """Those of the rows to fit on, and of each block of the rows to select by."""
    edges = [0.0, *np.linspace(SELECT, SCORE, BLOCKS + 1)]
    sums = [TransferMoments.none(features.count) for _ in edges[1:]]
    for chunk in pairs:
        for part, (low, high) in enumerate(pairwise(edges)):
            rows = chunk.within(low, high)
            if len(rows.x):
                found = TransferMoments.of(features(rows.x), features(rows.x_next), rows.weights)
                sums[part] = sums[part].merge(found)
    select = [block for block in sums[1:] if block.count > 0]  # of few groups, not every block has one
    if sums[0].count == 0 or not select:
        raise InputError("All pairs to fit on, or all to select by, have weight zero: weigh more evenly.")
    return sums[0], select
