"""Spectrum of a process without the true state: its slow functions and their correlations, from pairs (x, x') alone.

    C₀₁ v = λ C₀₀ v        on features φ(x), with C₀₁ symmetrised (`transfer_operator.py`, `spectral_encoder.py`)

In a Gaussian world with rates ρ_i the eigenvalues are all products Π ρ_i^{k_i}, and the first-degree functions are the
world's coordinates. So the eigenvalues show how many coordinates there are and how fast each is, and the functions at
ρ are an encoder: the global optimum within the features, without gradient descent.

Pairs are divided into three parts: to fit, to select kernel and ridge, and to score. All reported numbers are scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.ladder import Ladder, read_ladder
from jepatlas.identifiability.spectral.pair_rows import SCORE, SplitPairs
from jepatlas.identifiability.spectral.sfa import linear_functions
from jepatlas.identifiability.spectral.solver import Solution, SpectralSolver, SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder

__all__ = ["Spectrum", "fit_spectral_encoder", "nonlinear_rho", "rho_of_spectrum", "spectrum"]

LADDER_ROWS = 8000
RHO_FUNCTIONS = 8
"""Largest number of functions fitted for ρ: in the theorem's world as many as h has dimensions share the rate ρ."""


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues, the ladder that they form, and the encoder made of the first-degree functions."""

    eigenvalues: tuple[Estimate, ...]  # held out; of the leading functions, in the order of the fitted values
    fitted: tuple[float, ...]  # the same functions on the pairs of the fit: biased upwards
    ladder: Ladder
    encoder: SpectralEncoder
    rates: tuple[Estimate, ...]  # held out; ρ of each latent of the encoder
    reversibility: Verdict
    length_scale: float  # of the encoder's functions
    ridge: float
    excess: Estimate | None = None  # Σ of the rates beyond those of the linear functions of the latents, if compared


def spectrum(
    x: np.ndarray,
    x_next: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    dim: int | None = None,
    latents: tuple[np.ndarray, np.ndarray] | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Spectrum:
    """The spectrum of pairs (b, p), and an encoder of width `dim` (None: the number of directions found).

    `latents` of the same pairs are compared with it: `excess` is how much slower its functions are than theirs.

    Rows of one group (an episode, an object) stay together in every split and resample; without groups, rows must be
    independent pairs. With weights (b,), it is the spectrum of the reweighted pairs, fitted and held out.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> found = spectrum(np.sinh(z), np.sinh(z_next), settings=SpectrumSettings(features=64))
    >>> found.ladder.dim, [round(rate.value, 1) for rate in found.rates]
    (2, [0.9, 0.9])
    """
    settings = settings or SpectrumSettings()
    pairs = SplitPairs(x, x_next, groups=groups, weights=weights, seed=seed)
    solver = SpectralSolver(pairs, settings, seed)
    replicates = settings.replicates
    wide = solver.fit(settings.functions)
    blocks = BlockMoments.of(wide.encoder, pairs, SCORE)
    eigenvalues = blocks.rates(seed, replicates)
    fitted = wide.encoder.rates.tolist()
    (leading,) = BlockMoments.of(solver.fit(1).encoder, pairs, SCORE).rates(seed, replicates)
    functions = wide.encoder.apply(pairs.sample(LADDER_ROWS, SCORE, 1.0).x)
    columns = len(wide.encoder.features.whitening.weight)
    ladder = read_ladder(eigenvalues, fitted, functions, leading, columns=columns)
    narrow = _first_degree(solver, wide, ladder, dim)
    scored = BlockMoments.of(narrow.encoder, pairs, SCORE)
    rates = scored.rates(seed, replicates)
    excess = None
    if latents is not None and narrow.encoder.dim == latents[0].shape[1]:
        rows = SplitPairs(*latents, groups=groups, weights=weights, seed=seed)
        linear = linear_functions(rows, SCORE)
        if linear.dim == narrow.encoder.dim:
            fitted_excess = float(narrow.encoder.rates.sum() - linear.rates.sum())
            excess = _excess(scored, BlockMoments.of(linear, rows, SCORE), fitted_excess, seed, replicates)
    return Spectrum(
        eigenvalues,
        tuple(fitted),
        ladder,
        narrow.encoder,
        rates,
        blocks.reversibility(seed, replicates),
        narrow.length_scale,
        narrow.ridge,
        excess,
    )


def _excess(any_functions: BlockMoments, linear: BlockMoments, fitted: float, seed: int, replicates: int) -> Estimate:
    """Σ λ of n functions minus Σ λ of the n linear ones, on the same pairs, so that most sampling noise cancels.

    The held-out value is at most the true one in expectation, the fitted one at least; the upper limit is the larger of
    the fitted one and the held-out upper limit.
    """

    def statistic(weights: np.ndarray) -> dict[str, float]:
        difference = any_functions.correlations(weights).sum() - linear.correlations(weights).sum()
        return {"excess": float(difference)}

    rng = numpy_generator(seed, "spectrum/excess")
    found = bootstrap(statistic, len(linear.counts), rng, replicates=replicates)["excess"]
    return replace(found, high=max(found.high, fitted), n=linear.rows)


def _first_degree(solver: SpectralSolver, wide: Solution, ladder: Ladder, dim: int | None) -> Solution:
    """The encoder's functions, refitted because fewer functions need another ridge than the whole ladder.

    If harmonics lie between the directions, a refit could change their order, so the functions of `wide` are kept.
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
    """The encoder alone, for a known dimension. All pairs are used to fit it; none are held out to score."""
    settings = replace(settings or SpectrumSettings(), functions=dim)
    pairs = SplitPairs(x, x_next, groups=groups, weights=weights, seed=seed, below=SCORE)
    return SpectralSolver(pairs, settings, seed).fit(dim).encoder


def nonlinear_rho(
    h: np.ndarray,
    h_next: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Estimate:
    """ρ for Theorem 3's bound: the largest correlation between views of any function of h. Give it to `bound`.

    The latents' own correlation does not serve: with ρ = tr S / tr C₀₀, δ is zero for any h, scrambled or not. If h
    determines the state, functions of h are functions of the state, whose largest correlation is ρ in the theorem's
    world; it is attained by a nonlinear function of h exactly where h is a nonlinear function of the state.

    `value` is the held-out correlation of the slowest function found, in expectation at most ρ. The bound increases
    with ρ, so it needs an upper limit; `high` is the larger of two:
    - the upper limit of the held-out correlation, which covers sampling noise but not an imperfect fit
    - the fitted correlation, in expectation at least that of the best function of the family. Where the fit is poor
      (many dimensions, few pairs) it is far too large, and the bound is vacuous, as it should be.

    The features contain the linear functions, so it is exact near h = Qz. On scrambled latents it was up to .004 below
    ρ in our trials (8 dimensions, 20,000 pairs), where δ was much larger.

    Not covered are slow functions outside the features, and whatever h does not contain: from h = z² − 1 only ρ² can
    be seen, and the bound then certifies wrongly (its slowest function is not Gaussian: check that). If observations
    are available, use them instead of h: they contain at least as much.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 1))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> cubed = z**3, z_next**3
    >>> own = float(np.corrcoef(*(h[:, 0] for h in cubed))[0, 1])
    >>> nonlinear_rho(*cubed, settings=SpectrumSettings(features=64)).high > 0.89 > own
    True
    """
    pairs = SplitPairs(h, h_next, groups=groups, seed=seed)
    if settings is None:  # all directions, not only the widest: the slowest function may lie along any of them
        settings = SpectrumSettings(components=max(pairs.width, SpectrumSettings.components))
    settings = replace(settings, functions=min(pairs.width, RHO_FUNCTIONS))
    encoder = SpectralSolver(pairs, settings, seed).fit(settings.functions).encoder
    rate = BlockMoments.of(encoder, pairs, SCORE).rates(seed, settings.replicates)[0]
    return _with_upper_limit(rate, float(encoder.rates[0]))


def rho_of_spectrum(found: Spectrum) -> Estimate:
    """The same from an existing spectrum: that of the first of its encoder's functions."""
    return _with_upper_limit(found.rates[0], float(found.encoder.rates[0]))


def _with_upper_limit(rate: Estimate, fitted: float) -> Estimate:
    return replace(rate, high=min(max(rate.high, fitted), np.nextafter(1.0, 0.0)))
