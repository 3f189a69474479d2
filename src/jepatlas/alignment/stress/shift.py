"""What an alignment withstands: fitted on one part of the distribution, scored on another.

A part that varies less has a lower R² for any map. So beside every map stands the same fit on as many pairs of the part
that is scored (`UNSHIFTED`): what lies between both is the price of the shift. Its size is

    ‖E_score a − E_fit a‖ / √E_fit‖a − E_fit a‖²
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jepatlas.alignment.controls import pca_control
from jepatlas.alignment.splits import group_labels
from jepatlas.alignment.stress.curve import StressCurve
from jepatlas.alignment.stress.runs import FITS, Case, Protocol, run_cases
from jepatlas.alignment.stress.trial import Fits, LatentPairs, Trial
from jepatlas.core.arrays import check_finite
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split
from jepatlas.core.stats import mean_ranks

__all__ = ["STRENGTHS", "UNSHIFTED", "distribution_shift", "domain_shift"]

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
UNSHIFTED = ", no shift"
"""Added to the name of a fit on pairs of the part that is scored."""
SIZE = "shift of a's mean, in its root mean square spread"


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
    """A graded shift along a variable (n,), or along the first principal component of a.

    At strength t, groups are sorted by t · rank + (1 − t) · chance: the lowest are fitted on, others are scored. At 0
    that is a random split; at 1 all that is fitted lies below all that is scored.
    """
    latents, protocol = LatentPairs.of(a, b, labels, groups), protocol or Protocol()
    level, size = _levels(latents, along), round((1 - protocol.held) / 2 * (latents.groups.max() + 1))
    if strange := [strength for strength in strengths if not 0 <= strength <= 1]:
        raise InputError(f"The strength of a shift lies between 0 and 1, but {strange[0]} was given.")
    if size < 2:
        raise InputError(f"{len(level)} groups are too few for a shift: fitting on either part needs at least 2.")

    def trials(strength: float, own: np.random.Generator) -> dict[str, Trial]:
        chance = own.permutation(len(level)) / (len(level) - 1)
        order = np.lexsort((chance, strength * level + (1 - strength) * chance))
        others = own.permutation(order[size:])
        low, near, score = (
            np.flatnonzero(np.isin(latents.groups, part)) for part in (order[:size], others[:size], others[size:])
        )
        parts = {"": low, UNSHIFTED: near}
        return {name: Trial.right(latents, Split(part, score), own) for name, part in parts.items()}

    cases = [Case(0.0, f"{strength:g}", lambda own, strength=strength: trials(strength, own)) for strength in strengths]
    seeds = protocol.draw(rng)
    points = run_cases(_by_size(cases, seeds), fits, protocol, seeds)
    return StressCurve("Distribution shift", "strength", points, protocol.seeds, apart=SIZE)


def domain_shift(
    a: np.ndarray,
    b: np.ndarray,
    domains: np.ndarray,
    rng: np.random.Generator,
    *,
    fits: Fits = FITS,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    protocol: Protocol | None = None,
) -> StressCurve:
    """Each domain (a place, a sort of object, …) in turn is scored by maps fitted on all others.

    Half of its groups are scored. The other half is what the fit without shift draws from, besides the other domains.
    """
    latents, protocol = LatentPairs.of(a, b, labels, groups), protocol or Protocol()
    places, names = group_labels(domains, len(latents.a)), np.unique(domains)
    if len(names) < 2:
        raise InputError(f"One domain is left out and others are fitted on, but there is only {len(names)}.")

    def trials(domain: int, own: np.random.Generator) -> dict[str, Trial]:
        mine = own.permutation(np.unique(latents.groups[places == domain]))
        if len(mine) < 2:
            raise InputError(f"Domain '{names[domain]}' has 1 group, but half of its groups are to be scored.")
        scored = np.isin(latents.groups, mine[: len(mine) // 2])  # a group may reach into other domains
        far, near = np.flatnonzero((places != domain) & ~scored), np.flatnonzero(~scored)
        near = np.sort(own.choice(near, len(far), replace=False))
        score = np.flatnonzero(scored & (places == domain))
        parts = {"": far, UNSHIFTED: near}
        return {name: Trial.right(latents, Split(part, score), own) for name, part in parts.items()}

    cases = [Case(0.0, str(name), lambda own, k=k: trials(k, own)) for k, name in enumerate(names)]
    seeds = protocol.draw(rng)
    points = run_cases(_by_size(cases, seeds), fits, protocol, seeds)
    return StressCurve("Domains left out", "domain", points, protocol.seeds, apart=SIZE, joined=False)


def _levels(latents: LatentPairs, along: np.ndarray | None) -> np.ndarray:
    """The rank of each group's mean, from 0 to 1."""
    n = len(latents.a)
    along = pca_control(latents.a, 1, np.arange(n))[:, 0] if along is None else np.asarray(along, np.float64)
    if along.shape != (n,):
        raise InputError(f"A shift goes along one number for each of {n} rows, but 'along' has shape {along.shape}.")
    check_finite("along", along)
    mean = np.bincount(latents.groups, along) / np.bincount(latents.groups)
    if np.ptp(mean) == 0:
        raise InputError("There is no shift along a variable that is the same in all groups.")
    return (mean_ranks(mean) - 1) / (len(mean) - 1)


def _by_size(cases: Sequence[Case], seeds: Sequence[int]) -> list[Case]:
    """Each at the size of its shift, the mean over seeds."""
    measured = [replace(case, x=float(np.mean([_size(case, seed) for seed in seeds]))) for case in cases]
    return sorted(measured, key=lambda case: case.x)


def _size(case: Case, seed: int) -> float:
    trial = case.trials(np.random.default_rng(seed))[""]
    fit, score = (trial.latents.a[rows].astype(np.float64) for rows in trial.split)
    spread = np.sqrt(np.square(fit - fit.mean(0)).sum(1).mean())
    return float(np.linalg.norm(score.mean(0) - fit.mean(0)) / spread) if spread > 0 else float("inf")
