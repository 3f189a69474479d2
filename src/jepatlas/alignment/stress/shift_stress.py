"""Stress by distribution shift: fitted on one part of the distribution, scored on another.

A part with less variance has a lower R² under any map. Therefore each map is compared with the same fit on as many
pairs of the scored part (`UNSHIFTED`); the difference is the cost of the shift. The size of the shift is

    ‖E_score a − E_fit a‖ / √E_fit‖a − E_fit a‖²
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.paired import PairedLatents
from jepatlas.alignment.stress.stress_curve import StressCurve
from jepatlas.alignment.stress.stress_trial import FITS, Case, Fits, Protocol, Trial, run_cases, stress_pairs
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.stats import mean_ranks

__all__ = ["STRENGTHS", "UNSHIFTED", "distribution_shift"]

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
UNSHIFTED = ", no shift"
"""Suffix of the names of fits on pairs of the scored part."""
SIZE = "shift of a's mean, relative to its root mean square spread"


def distribution_shift(
    a: np.ndarray,
    b: np.ndarray,
    rng: np.random.Generator,
    *,
    along: np.ndarray | None = None,
    strengths: Sequence[float] = STRENGTHS,
    fits: Fits = FITS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """Graded shift along a variable (n,), by default along the first principal component of a.

    At strength t, groups are sorted by t · rank + (1 − t) · random: the lowest are fitted on, the others scored.
    Strength 0 is a random split; at strength 1 all fitted groups lie below all scored groups.
    """
    latents = stress_pairs(a, b, labels, groups)
    protocol = protocol or Protocol()
    level = _levels(latents, along)
    size = round((1 - protocol.held) / 2 * len(level))
    if invalid := [strength for strength in strengths if not 0 <= strength <= 1]:
        raise InputError(f"'strengths' of a shift must be in [0, 1], but {invalid[0]} was given.")
    if size < 2:
        raise InputError(f"{len(level)} groups are too few for a shift: each part to fit on needs at least 2 groups.")

    group_of_row = latents.groups
    assert group_of_row is not None  # see `stress_pairs`

    def trials(strength: float, rng: np.random.Generator) -> dict[str, Trial]:
        random = rng.permutation(len(level)) / (len(level) - 1)
        order = np.lexsort((random, strength * level + (1 - strength) * random))
        others = rng.permutation(order[size:])
        low, near, score = (
            np.flatnonzero(np.isin(group_of_row, part)) for part in (order[:size], others[:size], others[size:])
        )
        return {
            "": Trial.correct(latents, Split(low, score), rng),
            UNSHIFTED: Trial.correct(latents, Split(near, score), rng),
        }

    cases = [Case(0.0, f"{strength:g}", lambda rng, strength=strength: trials(strength, rng)) for strength in strengths]
    seeds = protocol.draw(rng)
    points = run_cases(_by_size(cases, seeds), fits, protocol, seeds)
    return StressCurve("Distribution shift", "strength", points, protocol.seeds, x_title=SIZE)


def _levels(latents: PairedLatents, along: np.ndarray | None) -> np.ndarray:
    """Rank of each group's mean along the variable, from 0 to 1."""
    n = len(latents)
    groups = latents.groups
    assert groups is not None  # see `stress_pairs`
    along = pca_control(latents.a.h, 1, np.arange(n))[:, 0] if along is None else np.asarray(along, np.float64)
    if along.shape != (n,):
        raise InputError(f"'along' must have one number for each of {n} rows, but has shape {along.shape}.")
    check_finite("along", along)
    mean = np.bincount(groups, along) / np.bincount(groups)
    if np.ptp(mean) == 0:
        raise InputError("'along' has the same mean in all groups, so it defines no shift.")
    return (mean_ranks(mean) - 1) / (len(mean) - 1)


def _by_size(cases: Sequence[Case], seeds: Sequence[int]) -> list[Case]:
    """Cases sorted by the size of their shift, the mean over seeds."""
    measured = [replace(case, x=float(np.mean([_size(case, seed) for seed in seeds]))) for case in cases]
    return sorted(measured, key=lambda case: case.x)


def _size(case: Case, seed: int) -> float:
    trial = case.trials(np.random.default_rng(seed))[""]
    fit, score = (trial.latents.a.h[rows].astype(np.float64) for rows in trial.split)
    spread = np.sqrt(np.square(fit - fit.mean(0)).sum(1).mean())
    return float(np.linalg.norm(score.mean(0) - fit.mean(0)) / spread) if spread > 0 else float("inf")
