"""Spectrum without truth: the slow functions of a process and their correlations, from pairs (x, x') alone.

    C₀₁ v = λ C₀₀ v        on features φ(x), with C₀₁ made symmetric (`transfer.py`, `features.py`)

In a Gaussian world with rates ρ_i the eigenvalues are all products Π ρ_i^{k_i}, and the first-degree functions are the
world's coordinates. So the ladder of eigenvalues shows how many coordinates there are and how fast each is, and the
functions at ρ are an encoder: the global optimum within the features, with no gradient descent.

Pairs are in three parts: to fit, to select kernel and ridge, and to score. Every reported number is of the last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.ladder import Ladder, read_ladder
from jepatlas.identifiability.spectral.pair_chunks import Chunks, PairArrays, PairChunks
from jepatlas.identifiability.spectral.selection import SCORE
from jepatlas.identifiability.spectral.solver import Solution, SpectralSolver, SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder

__all__ = ["Spectrum", "fit_spectral_encoder", "spectrum", "spectrum_of_chunks"]

LADDER_ROWS = 8000


@dataclass(frozen=True)
class Spectrum:
    """The ladder, what it says, and the encoder that its first-degree functions are."""

    eigenvalues: tuple[Estimate, ...]  # held out; of the leading functions, in the order of the fitted values
    fitted: tuple[float, ...]  # the same functions on the pairs of the fit: biased upwards
    ladder: Ladder
    encoder: SpectralEncoder
    rates: tuple[Estimate, ...]  # held out; ρ of each latent of the encoder
    reversibility: Verdict
    length_scale: float  # of the encoder's functions
    ridge: float


def spectrum(
    x: np.ndarray,
    x_next: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    dim: int | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Spectrum:
    """The spectrum of pairs (b, p), and an encoder of width `dim` (where None: as many as the ladder shows).

    Rows of one group (an episode, an object) stay together in every split and resample; without groups the rows must
    be independent pairs. With weights (b,) it is the spectrum of the reweighted pairs, fitted and held out.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> found = spectrum(np.sinh(z), np.sinh(z_next), settings=SpectrumSettings(features=64))
    >>> found.ladder.dim, [round(rate.value, 1) for rate in found.rates]
    (2, [0.9, 0.9])
    """
    return spectrum_of_chunks(PairArrays(x, x_next, groups, weights=weights), dim=dim, settings=settings, seed=seed)


def spectrum_of_chunks(
    chunks: Chunks,
    *,
    dim: int | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Spectrum:
    """The same from chunks (x, x_next[, groups[, weights]]), of which one at a time is in memory.

    They are read several times: give a list, or an object whose `__iter__` starts anew.
    """
    solver = SpectralSolver(PairChunks(chunks, seed), settings or SpectrumSettings(), seed)
    replicates = solver.settings.replicates
    wide = solver.fit(solver.settings.functions)
    blocks = BlockMoments.of(wide.encoder, solver.pairs, SCORE)
    eigenvalues, fitted = blocks.rates(seed, replicates), wide.encoder.rates.tolist()
    (leading,) = BlockMoments.of(solver.fit(1).encoder, solver.pairs, SCORE).rates(seed, replicates)
    functions = wide.encoder.apply(solver.pairs.sample(LADDER_ROWS, SCORE, 1.0).x)
    columns = len(wide.encoder.features.whitening.weight)
    ladder = read_ladder(eigenvalues, fitted, functions, leading, columns=columns)
    narrow = _narrow(solver, wide, ladder, dim)
    rates = BlockMoments.of(narrow.encoder, solver.pairs, SCORE).rates(seed, replicates)
    return Spectrum(
        eigenvalues,
        tuple(fitted),
        ladder,
        narrow.encoder,
        rates,
        blocks.reversibility(seed, replicates),
        narrow.length_scale,
        narrow.ridge,
    )


def _narrow(solver: SpectralSolver, wide: Solution, ladder: Ladder, dim: int | None) -> Solution:
    """The encoder's functions: fewer of them want another ridge than the whole ladder.

    Where harmonics stand between the directions, a new fit could change their order: keep those that were read.
    """
    kept = list(ladder.directions or [0]) if dim is None else list(range(dim))
    if kept == list(range(len(kept))):
        return solver.fit(len(kept))
    encoder = wide.encoder
    return replace(wide, encoder=replace(encoder, weight=encoder.weight[kept], rates=encoder.rates[kept]))


def fit_spectral_encoder(
    x: np.ndarray,
    x_next: np.ndarray,
    dim: int,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> SpectralEncoder:
    """The encoder alone, for a known dimension: the quick baseline. All pairs go into it; none is left to score on."""
    settings = replace(settings or SpectrumSettings(), functions=dim)
    pairs = PairChunks(PairArrays(x, x_next, groups, weights=weights), seed, below=SCORE)
    return SpectralSolver(pairs, settings, seed).fit(dim).encoder
