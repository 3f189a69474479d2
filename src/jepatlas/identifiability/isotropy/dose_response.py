"""The dose–response curve of isotropisation: recovery of the true state against the knob, and what it costs.

Each dose weighs (or resamples) the pairs, fits a spectral encoder to them, and asks how well its latents give the true
state on *unweighted* rows that took no part: of the data's own distribution, of a Gaussian one, of whatever is given.
So a dose that only hides the rows it cannot explain gains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.identifiability.checks import check_matrices
from jepatlas.identifiability.isotropy.isotropise import Isotropised, fit_isotropy, isotropic_resample
from jepatlas.identifiability.spectral.chunk_checks import FEWEST_PAIRS
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.spectrum import fit_spectral_encoder
from jepatlas.identifiability.truth.recovery import recovery

__all__ = ["DoseResponse", "HeldOut", "Method", "dose_response", "dosed_encoder", "state_recovery"]

Method = Literal["reweight", "resample"]
HeldOut = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Observations (b, p) and true states (b, n) to score on, by the name of their distribution."""

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class DoseResponse:
    """One point of the curve."""

    dose: float
    ess: float  # effective number of pairs
    share: float  # of the pairs that were given
    distance: float  # of the weighted coordinates from the target, as `Isotropised` has it
    recovery: Mapping[str, Estimate]  # held-out R² of the state, by test; NaN where too few pairs were left to fit


def dose_response(
    x: np.ndarray,
    x_next: np.ndarray,
    s: np.ndarray,
    s_next: np.ndarray,
    tests: HeldOut,
    *,
    dim: int,
    doses: Sequence[float] = DOSES,
    method: Method = "reweight",
    units: Literal["steps", "given"] = "steps",
    scale: float = 1.0,
    settings: SpectrumSettings | None = None,
    seed: int = 0,
    replicates: int = 200,
) -> tuple[DoseResponse, ...]:
    """From pairs of observations x (b, p), with the coordinates s (b, d) to isotropise in, one point for each dose.

    `dim` is the width of the encoder; `units` and `scale` are those of `isotropic_weights`.
    """
    check_matrices(x=x, x_next=x_next, s=s, s_next=s_next)
    if not tests:
        raise InputError("A dose–response curve needs at least one test: observations with their true states.")
    isotropy, points = fit_isotropy(s, s_next, units=units, scale=scale, seed=seed), []
    for dose in doses:
        found = isotropy.at(dose)
        encoder = dosed_encoder(x, x_next, found, dim, method=method, settings=settings, seed=seed)
        options = {"seed": seed, "replicates": replicates}
        scores = {name: state_recovery(encoder, *test, **options) for name, test in tests.items()}
        points.append(DoseResponse(dose, found.ess, found.ess / len(x), found.distance, scores))
    return tuple(points)


def dosed_encoder(
    x: np.ndarray,
    x_next: np.ndarray,
    isotropised: Isotropised,
    dim: int,
    *,
    method: Method = "reweight",
    settings: SpectrumSettings | None = None,
    seed: int = 0,
) -> SpectralEncoder | None:
    """The spectral encoder of weighted or resampled pairs; None where they are worth too few to fit one."""
    if method not in ("reweight", "resample"):
        raise InputError(f"Pairs are isotropised by 'reweight' or 'resample', but '{method}' was asked for.")
    if isotropised.ess < FEWEST_PAIRS:
        return None
    if method == "reweight":
        return fit_spectral_encoder(x, x_next, dim, weights=isotropised.weights, settings=settings, seed=seed)
    drawn = isotropic_resample(isotropised.weights, numpy_generator(seed, "dose/resample"))
    # copies of a pair are one group: else the selection of kernel and ridge would see what the fit has seen
    return fit_spectral_encoder(x[drawn], x_next[drawn], dim, groups=drawn, settings=settings, seed=seed)


def state_recovery(
    encoder: SpectralEncoder | None, x: np.ndarray, z: np.ndarray, *, seed: int = 0, replicates: int = 200
) -> Estimate:
    """R² of the true states from the latents, by a linear map that was fitted on the other half of the rows."""
    check_matrices(x=x, z=z)
    if encoder is None:
        return Estimate(np.nan, np.nan, np.nan, 0)
    split = hold_out(len(x), numpy_generator(seed, "dose/split"))
    rng = numpy_generator(seed, "dose/bootstrap")
    return recovery(encoder.apply(x), z.astype(np.float64), split, rng, replicates=replicates)["r2"]
