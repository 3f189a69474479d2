"""ρ for Theorem 3's bound, where nobody knows the world's: the slowest function of the latents, linear or not.

Why not the latents' own correlation: δ = L − 2(1−ρ) tr Cov h and L = 2 tr(C₀₀ − S), so with ρ = tr S / tr C₀₀ δ is
zero for any h, scrambled or not. δ asks whether some *other* function of the state is slower than h is. If h
determines the state, the functions of h are all functions of the state, and in the theorem's world their largest
correlation is ρ itself, reached by a nonlinear function of h exactly where h is a nonlinear function of the state.

`value` is the held-out correlation of the slowest function found: in expectation not above ρ, so alone it would
make the bound too small. D grows with ρ, so the bound needs an upper limit. Two are at hand; `high` is the larger:
- the held-out correlation's upper limit, which knows the noise of the sample but not that the fit fell short;
- the fitted correlation, a maximum over functions on their own sample: in expectation not below the best function
  of the family. Where the fit is poor (many dimensions, few pairs) it is far above, and the bound is vacuous, as
  it should be.

The features contain the linear functions, so it is exact where it matters, near h = Qz. From scrambled latents it
fell short of ρ by up to .004 in our trials (8 dimensions, 20,000 pairs), where δ was larger by far.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.identifiability.spectral.held_out import BlockMoments
from jepatlas.identifiability.spectral.pair_chunks import PairArrays, PairChunks
from jepatlas.identifiability.spectral.selection import SCORE
from jepatlas.identifiability.spectral.solver import SpectralSolver, SpectrumSettings
from jepatlas.identifiability.spectral.spectrum import Spectrum

__all__ = ["nonlinear_rho", "rho_of_spectrum"]

MOST = 8
"""Functions to fit at once, at most: as many as h has dimensions share the rate ρ in the theorem's world."""


def nonlinear_rho(
    h: np.ndarray,
    h_next: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> Estimate:
    """The leading eigenvalue over *all* functions of h, with limits; give `high` to `bound` as its ρ.

    What it cannot know: a slow function outside the features, and whatever h has lost. From h = z² − 1 nothing but ρ²
    can be seen, and the bound then certifies in vain (the slowest function is not Gaussian there: look at it). If the
    observations are at hand, give them instead of h: they know at least as much.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 4000, 1))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> cubed = z**3, z_next**3
    >>> own = float(np.corrcoef(*(h[:, 0] for h in cubed))[0, 1])
    >>> nonlinear_rho(*cubed, settings=SpectrumSettings(features=64)).high > 0.89 > own
    True
    """
    pairs = PairChunks(PairArrays(h, h_next, groups), seed)
    # all directions, not the widest alone: the slowest function may live on any
    settings = settings or SpectrumSettings(components=max(pairs.width, SpectrumSettings.components))
    settings = replace(settings, functions=min(pairs.width, MOST))
    solver = SpectralSolver(pairs, settings, seed)
    encoder = solver.fit(settings.functions).encoder
    rate = BlockMoments.of(encoder, solver.pairs, SCORE).rates(seed, settings.replicates)[0]
    return _with_upper_limit(rate, float(encoder.rates[0]))


def rho_of_spectrum(found: Spectrum) -> Estimate:
    """The same from a spectrum that is at hand: of the first of its encoder's functions."""
    return _with_upper_limit(found.rates[0], float(found.encoder.rates[0]))


def _with_upper_limit(rate: Estimate, fitted: float) -> Estimate:
    return replace(rate, high=min(max(rate.high, fitted), np.nextafter(1.0, 0.0)))
