"""Linear slow feature analysis (TICA), the classical baseline, as a spectral encoder.

    min E‖h − h'‖²   subject to   E h = 0, E hhᵀ = I        over h linear in x

(Wiskott & Sejnowski 2002). For stationary pairs this is C₀₁ v = λ C₀₀ v with slowness E(h−h')² = 2(1−λ), which is TICA.
Greedy and simultaneous extraction give the same eigenvectors in the same order. If ρ₂ < ρ₁², the second slowest
function is the harmonic z₁² − 1 and not z₂, which decorrelation does not prevent; Gaussian latents, as in LeJEPA, do.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.moments import Moments
from jepatlas.identifiability.spectral.pair_rows import SplitPairs
from jepatlas.identifiability.spectral.spectral_encoder import Features, SpectralEncoder, principal_whitener
from jepatlas.identifiability.spectral.transfer_operator import TransferMoments, eigenfunctions

__all__ = ["linear_functions", "linear_sfa"]


def linear_sfa(x: np.ndarray, x_next: np.ndarray, dim: int | None = None) -> SpectralEncoder:
    """The `dim` slowest linear functions of x (None: all); constant directions of x are dropped.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 5000, 2))
    >>> rho = np.array([0.9, 0.5])
    >>> x, x_next = (s @ np.array([[1.0, 2.0], [0.0, 3.0]]) for s in (z, rho * z + np.sqrt(1 - rho**2) * noise))
    >>> linear_sfa(x, x_next).rates.round(1)
    array([0.9, 0.5])
    """
    return linear_functions(SplitPairs(x, x_next), dim=dim)


def linear_functions(pairs: SplitPairs, below: float = 1.0, dim: int | None = None) -> SpectralEncoder:
    """The `dim` slowest linear functions of x, fitted on the rows with places in [0, below)."""
    input_moments = []
    for batch in pairs:
        rows = batch.within(0, below)
        input_moments += [Moments.of(torch.from_numpy(rows.x)), Moments.of(torch.from_numpy(rows.x_next))]
    whitening = principal_whitener(reduce(Moments.merge, input_moments))
    features = Features(whitening, np.zeros((0, len(whitening.weight))))
    count = features.count if dim is None else dim
    if not 1 <= count <= features.count:
        raise InputError(f"dim must be from 1 to {features.count} for this x, but is {dim}.")
    fit = (batch.within(0, below) for batch in pairs)
    parts = (TransferMoments.of(features(rows.x), features(rows.x_next), rows.weights) for rows in fit)
    moments = reduce(TransferMoments.merge, parts)
    (found,) = eigenfunctions(moments, [0.0], count)
    return SpectralEncoder(features, found.vectors.T, moments.mean, found.values)
