"""How many directions latents really have: those that vary, and coordinates that only repeat another one.

    R = D⁻¹ Cov(h) D⁻¹        D: standard deviations; rank = eigenvalues of R above a floor

Of latents at variance one, because everybody's model has units of its own. One that hardly varies beside the widest has
collapsed, and takes no part.
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
    "repeated_coordinates",
    "varying_coordinates",
]

FLOOR = 1e-3
"""Variance of a direction, with every latent at variance one, up to which it counts as noise on a repetition; and the
standard deviation of a latent, relative to the widest, up to which it does not vary."""


@dataclass(frozen=True)
class PrincipalAxes:
    """Eigenvalues and vectors of the latents' correlation matrix, largest first."""

    mean: np.ndarray  # (m,)
    units: np.ndarray  # (m,): 1/standard deviation; 0 of a latent that does not vary
    values: np.ndarray  # (r,): those above the floor
    vectors: np.ndarray  # (m, r): columns of unit length

    @property
    def whitener(self) -> LinearMap:
        """h → its r directions, each with variance one."""
        if not len(self.values):
            raise InputError("The latents do not vary: all rows are the same, so they hold nothing.")
        weight = (self.vectors / np.sqrt(self.values)).T * self.units
        return LinearMap(weight, self.mean, np.zeros(len(weight)))


def principal_axes(h: np.ndarray, h_next: np.ndarray, floor: float = FLOOR) -> PrincipalAxes:
    """Of latents h and those of the paired views (b, m), about their common mean."""
    both = np.concatenate([h, h_next])
    values, vectors, units = _axes(WeightedCovariance(both)(np.ones(len(both))), floor)
    kept = values > floor
    return PrincipalAxes(both[0] + (both - both[0]).mean(0), units, values[kept], vectors[:, kept])


def _axes(covariance: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All eigenvalues of the correlation matrix, its vectors as columns, and the units it is taken in."""
    variance = np.diagonal(covariance)
    varies = variance > floor**2 * max(variance.max(), np.finfo(float).tiny)
    units = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1)), 0)
    values, vectors = np.linalg.eigh(covariance * np.outer(units, units))
    return values[::-1], vectors[:, ::-1], units


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
        values, _, _ = _axes(covariance(np.concatenate([weights, weights])), floor)
        return {"rank": float((values > floor).sum())}

    return bootstrap(statistic, len(h), rng, groups=groups, replicates=replicates)["rank"]


def effective_rank(h: np.ndarray, h_next: np.ndarray, rank: Estimate | None = None) -> Verdict:
    """The number of directions of the latents that vary, against their width; `rank` where its interval is known.

    >>> h = np.array([[1.0, 3.0], [2.0, 3.0], [4.0, 3.0]])
    >>> effective_rank(h, h).advice.split(":")[0]
    'Only 1 of 2 latent directions vary'
    """
    alive = float(len(principal_axes(h, h_next).values)) if rank is None else rank.value
    return Verdict.judge(
        "effective_rank",
        rank or Estimate(alive, alive, alive, len(h)),
        direction="higher",
        threshold=h.shape[1],
        good="Every latent direction varies. Whether the world has more dimensions than that, latents cannot tell.",
        bad=f"Only {alive:.0f} of {h.shape[1]} latent directions vary: the others collapsed, or repeat them. If the "
        "world has fewer dimensions than the latents, use fewer.",
    )


def varying_coordinates(axes: PrincipalAxes, rows: int) -> Verdict:
    """The number of coordinates that vary beside the widest; it informs.

    Directions may be fewer: then none has faded, but some coordinates are linear combinations of others.
    """
    count = float(np.count_nonzero(axes.units))
    return Verdict.judge(
        "varying_coordinates",
        Estimate(count, count, count, rows),
        direction="higher",
        good="Coordinates of the latents that vary; where directions are fewer, some are combinations of others.",
    )


def repeated_coordinates(h: np.ndarray, h_next: np.ndarray) -> Verdict:
    """The number of coordinates that are another one over again, as it is or with its sign turned; it informs.

    Each makes a direction that does not vary, too. But there nothing has faded: a place is taken twice. Copies of
    another size are not counted, for so is every coordinate of latents that collapsed onto one slanting line.

    >>> h = np.random.default_rng(0).standard_normal((100, 2))
    >>> repeated_coordinates(np.c_[h, 5 - h[:, :1]], np.c_[h, 5 - h[:, :1]]).advice
    'Latent coordinate 2 repeats coordinate 0.'
    """
    both = np.concatenate([h, h_next])
    covariance = WeightedCovariance(both)(np.ones(len(both)))
    varies, own = _axes(covariance, FLOOR)[2] > 0, np.diagonal(covariance)
    sizes = own[:, None] + own
    same = np.tril((sizes - 2 * np.abs(covariance) <= FLOOR * sizes) & varies[:, None] & varies, -1)  # Var(h_i ∓ h_j)
    copies = np.flatnonzero(same.any(1))
    count = float(len(copies))
    first = f"Latent coordinate {copies[0]} repeats coordinate {same[copies[0]].argmax()}" if len(copies) else ""
    more = f", and {len(copies) - 1} others repeat one" if len(copies) > 1 else ""
    return Verdict.judge(
        "repeated_coordinates",
        Estimate(count, count, count, len(h)),
        direction="lower",
        good=f"{first}{more}." if first else "No latent coordinate repeats another one.",
    )
