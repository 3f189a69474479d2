"""Dose–response curve of isotropisation: recovery of the true state against the dose, and its cost.

Each dose weighs (or resamples) the pairs, a spectral encoder is fitted to them, and recovery of the true state is
scored on *unweighted* held-out rows: of the data's own distribution, a Gaussian one, or any other. So a dose that only
downweights the rows it cannot explain gains nothing.
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
from jepatlas.identifiability.isotropisation import Isotropised, fit_isotropy, isotropic_resample
from jepatlas.identifiability.linear_recovery import recovery
from jepatlas.identifiability.spectral.pair_rows import MIN_PAIRS
from jepatlas.identifiability.spectral.solver import SpectrumSettings
from jepatlas.identifiability.spectral.spectral_encoder import SpectralEncoder
from jepatlas.identifiability.spectral.spectrum import fit_spectral_encoder
from jepatlas.identifiability.validation import check_matrices

__all__ = ["DoseResponse", "HeldOut", "Method", "dose_response"]

Method = Literal["reweight", "resample"]
HeldOut = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Observations (b, p) and true states (b, n) to score on, by the name of their distribution."""

DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class DoseResponse:
    """One point of the curve."""

    dose: float
    ess: float  # effective number of pairs
    share: float  # ess relative to the number of pairs
    distance: float  # of the weighted coordinates from the target, as in `Isotropised`
    recovery: Mapping[str, Estimate]  # held-out R² of the state, by test; NaN if too few pairs were left to fit


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
    """One point per dose, from pairs of observations x (b, p) and coordinates s (b, d) to isotropise in.

    `dim` is the width of the encoder; `units` and `scale` are those of `isotropic_weights`.
    """
    check_matrices(x=x, x_next=x_next, s=s, s_next=s_next)
    if not tests:
        raise InputError("tests must contain at least one test: observations with their true states.")
    if method not in ("reweight", "resample"):
        raise InputError(f"method must be 'reweight' or 'resample', but is '{method}'.")
    isotropy = fit_isotropy(s, s_next, units=units, scale=scale, seed=seed)
    points = []
    for dose in doses:
        found = isotropy.at(dose)
        encoder = _fit_encoder(x, x_next, found, dim, method=method, settings=settings, seed=seed)
        scores = {}
        for name, (test_x, test_z) in tests.items():
            scores[name] = _state_recovery(encoder, test_x, test_z, seed, replicates)
        points.append(DoseResponse(dose, found.ess, found.ess / len(x), found.distance, scores))
    return tuple(points)


def _fit_encoder(
    x: np.ndarray,
    x_next: np.ndarray,
    isotropised: Isotropised,
    dim: int,
    *,
    method: Method,
    settings: SpectrumSettings | None,
    seed: int,
) -> SpectralEncoder | None:
    """The spectral encoder of weighted or resampled pairs; None if their effective number is too small."""
    if isotropised.ess < MIN_PAIRS:
        return None
    if method == "reweight":
        return fit_spectral_encoder(x, x_next, dim, weights=isotropised.weights, settings=settings, seed=seed)
    drawn = isotropic_resample(isotropised.weights, numpy_generator(seed, "dose/resample"))
    # Copies of a pair form a group, otherwise kernel and ridge would be selected on pairs used in the fit.
    return fit_spectral_encoder(x[drawn], x_next[drawn], dim, groups=drawn, settings=settings, seed=seed)


def _state_recovery(
    encoder: SpectralEncoder | None, x: np.ndarray, z: np.ndarray, seed: int, replicates: int
) -> Estimate:
    """R² of the true states from the latents, by a linear map fitted on the other half of the rows."""
    check_matrices(x=x, z=z)
    if encoder is None:
        return Estimate.undefined(0)
    split = hold_out(len(x), numpy_generator(seed, "dose/split"))
    rng = numpy_generator(seed, "dose/bootstrap")
    return recovery(encoder.apply(x), z.astype(np.float64), split, rng, replicates=replicates)["r2"]
