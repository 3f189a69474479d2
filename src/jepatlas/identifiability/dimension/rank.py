"""Effective rank of latents: directions that vary, and coordinates that repeat another one.

    R = D⁻¹ Cov(h) D⁻¹        D: standard deviations;  rank = number of eigenvalues of R above a floor

Latents are standardised, because models have different units. A latent that hardly varies relative to the widest one
has collapsed and is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import WeightedCovariance

__all__ = [
    "FLOOR",
    "PrincipalAxes",
    "effective_rank",
    "linear_rank",
    "principal_axes",
    "rank_of",
    "repeated_coordinates",
    "varying_coordinates",
]

FLOOR = 1e-3
"""Variance of a direction of standardised latents below which a direction counts as a noisy copy of others; and the
standard deviation of a latent, relative to the widest, up to which it counts as constant."""


@dataclass(frozen=True)
class PrincipalAxes:
    """Eigenvalues and eigenvectors of the latents' correlation matrix, largest first."""

    mean: np.ndarray  # (m,)
    units: np.ndarray  # (m,): 1/standard deviation; 0 for a constant latent
    values: np.ndarray  # (r,): those above the floor
    vectors: np.ndarray  # (m, r): unit columns

    @property
    def whitener(self) -> LinearMap:
        """h → its r directions, scaled to unit variance."""
        if not len(self.values):
            raise InputError("The latents are constant: all rows are equal.")
        weight = (self.vectors / np.sqrt(self.values)).T * self.units
        return LinearMap(weight, self.mean, np.zeros(len(weight)))


def principal_axes(h: np.ndarray, h_next: np.ndarray, floor: float = FLOOR) -> PrincipalAxes:
    """Principal axes of the latents of both views (b, m), about their common mean."""
    both = np.concatenate([h, h_next])
    values, vectors, units = _axes(WeightedCovariance(both)(np.ones(len(both))), floor)
    kept = values > floor
    mean = both[0] + (both - both[0]).mean(0)
    return PrincipalAxes(mean, units, values[kept], vectors[:, kept])


def _axes(covariance: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All eigenvalues of the correlation matrix, its eigenvectors as columns, and 1/standard deviations."""
    variance = np.diagonal(covariance)
    varies = variance > floor**2 * max(variance.max(), np.finfo(float).tiny)
    units = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(units, units))
    return values[::-1], vectors[:, ::-1], units


def rank_of(covariance: np.ndarray, floor: float = FLOOR) -> int:
    """The number of directions of standardised latents whose variance is above the floor, from their covariance."""
    values, _, _ = _axes(covariance, floor)
    return int((values > floor).sum())


def linear_rank(
    h: np.ndarray,
    h_next: np.ndarray,
    rng: np.random.Generator,
    *,
    groups: np.ndarray | None = None,
    floor: float = FLOOR,
    replicates: int = 500,
) -> Estimate:
    """The number of linearly independent latents, with a group-bootstrap interval."""
    covariance = WeightedCovariance(np.concatenate([h, h_next]))

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"rank": float(rank_of(covariance(np.concatenate([weights, weights])), floor))}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)["rank"]


def effective_rank(h: np.ndarray, h_next: np.ndarray, rank: Estimate | None = None) -> Verdict:
    """The number of latent directions that vary, compared with the width; `rank` is an estimate with interval.

    >>> h = np.array([[1.0, 3.0], [2.0, 3.0], [4.0, 3.0]])
    >>> effective_rank(h, h).value
    1.0
    """
    if rank is None:
        rank = Estimate.exact(len(principal_axes(h, h_next).values), len(h))
    width = h.shape[1]
    return Verdict.judge(
        "effective_rank",
        rank,
        direction="higher",
        threshold=width,
        good=f"All {width} latent directions vary. Whether the world has more dimensions is not visible in them.",
        bad=f"Only {rank.value:.0f} of {width} latent directions vary: the others collapsed or repeat them. If the "
        "world has fewer dimensions than the latents, use fewer latents.",
    )


def varying_coordinates(axes: PrincipalAxes, rows: int) -> Verdict:
    """The number of coordinates that vary relative to the widest, without threshold.

    It may exceed the number of varying directions: then some coordinates are linear combinations of others.
    """
    return Verdict.judge(
        "varying_coordinates",
        Estimate.exact(int(np.count_nonzero(axes.units)), rows),
        direction="higher",
        good="Number of latent coordinates that vary. If fewer directions vary, some are combinations of others.",
    )


def repeated_coordinates(h: np.ndarray, h_next: np.ndarray) -> Verdict:
    """The number of coordinates that equal another one, possibly with opposite sign, without threshold.

    Each also reduces the rank, but nothing has collapsed. Copies of a different scale are not counted, because
    coordinates of latents that collapsed onto one line are such copies.

    >>> h = np.random.default_rng(0).standard_normal((100, 2))
    >>> repeated_coordinates(np.c_[h, 5 - h[:, :1]], np.c_[h, 5 - h[:, :1]]).advice
    'Latent coordinate 2 repeats coordinate 0.'
    """
    both = np.concatenate([h, h_next])
    covariance = WeightedCovariance(both)(np.ones(len(both)))
    varies = _axes(covariance, FLOOR)[2] > 0
    variance = np.diagonal(covariance)
    total = variance[:, None] + variance
    difference = total - 2 * np.abs(covariance)  # Var(h_i ∓ h_j)
    same = np.tril((difference <= FLOOR * total) & varies[:, None] & varies, -1)
    copies = np.flatnonzero(same.any(1))
    advice = "No latent coordinate repeats another one."
    if len(copies):
        advice = f"Latent coordinate {copies[0]} repeats coordinate {same[copies[0]].argmax()}"
        others = len(copies) - 1
        if others:
            advice += f", and {others} other{'s repeat' if others > 1 else ' repeats'} one"
        advice += "."
    return Verdict.judge("repeated_coordinates", Estimate.exact(len(copies), len(h)), direction="lower", good=advice)
