"""Whitened pairs, and the rule by which violations of an assumption are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from jepatlas.core.arrays import group_numbers
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.covariance import resampling_units
from jepatlas.identifiability.dimension.rank import PrincipalAxes

__all__ = ["DRAWS", "WhitePairs", "add_in_quadrature", "judge", "mean_and_quantile"]

DRAWS = 200  # of each null and interval


@dataclass(frozen=True)
class WhitePairs:
    """Pairs in coordinates of unit covariance, and the random generators for their nulls and intervals."""

    h: np.ndarray  # (b, r)
    h_next: np.ndarray  # (b, r)
    given: np.ndarray  # (b, m): the varying coordinates of h, not whitened
    columns: np.ndarray  # (m,): their indices in h
    labels: np.ndarray  # (b,)
    seed: int
    draws: int = DRAWS

    @classmethod
    def of(
        cls,
        h: np.ndarray,
        h_next: np.ndarray,
        axes: PrincipalAxes,
        groups: np.ndarray | None,
        seed: int,
        *,
        draws: int = DRAWS,
    ) -> Self:
        labels = group_numbers(groups, len(h))
        # symmetric whitening if no direction is dropped: coordinates stay as close to the given ones as possible
        turn = axes.vectors.T if len(axes.values) == h.shape[1] else np.eye(len(axes.values))
        varies = np.flatnonzero(axes.units)
        white = axes.whitener
        return cls(white.apply(h) @ turn, white.apply(h_next) @ turn, h[:, varies], varies, labels, seed, draws)

    @property
    def groups(self) -> int:
        return int(self.labels.max()) + 1

    @cached_property
    def units(self) -> np.ndarray:
        """What each row is resampled with, (b,)."""
        return resampling_units(len(self.h), self.labels, 2 * self.h.shape[1])

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, f"audit/{name}")

    def subsampled(self, rows: int) -> WhitePairs:
        """Random groups with about `rows` rows in total."""
        order = self.rng("rows").permutation(self.groups)
        sizes = np.cumsum(np.bincount(self.labels)[order])
        kept = np.isin(self.labels, order[: np.searchsorted(sizes, rows) + 1])
        labels = np.unique(self.labels[kept], return_inverse=True)[1]
        return replace(self, h=self.h[kept], h_next=self.h_next[kept], given=self.given[kept], labels=labels)

    def estimate(self, name: str, statistic: Callable[[np.ndarray], float], minimum: float = -np.inf) -> Estimate:
        """Interval of a statistic of row weights that is never below `minimum`."""
        return self.estimates(name, lambda weights: {name: statistic(weights)}, {name: minimum})[name]

    def estimates(
        self, name: str, statistic: Callable[[np.ndarray], Mapping[str, float]], minimum: Mapping[str, float]
    ) -> dict[str, Estimate]:
        """Intervals of several statistics, centred at the value, which has the bias of one sample, as the null has."""
        rng = self.rng(name)
        found = bootstrap(statistic, len(self.h), rng, groups=self.units, replicates=self.draws, centred=True)
        return {key: replace(interval, low=max(interval.low, minimum[key])) for key, interval in found.items()}

    def signs(self, name: str) -> Iterator[np.ndarray]:
        """Random signs of the rows, equal within groups: a null for statistics that are symmetric about zero."""
        rng = self.rng(name)
        return (rng.choice([-1.0, 1.0], self.groups)[self.labels] for _ in range(self.draws))

    def unit_signs(self, name: str) -> Iterator[np.ndarray]:
        """Random signs of the rows, equal within resampling units."""
        rng = self.rng(name)
        units = int(self.units.max()) + 1
        return (rng.choice([-1.0, 1.0], units)[self.units] for _ in range(self.draws))


def judge(name: str, estimate: Estimate, null: tuple[float, float], relevant: float, *, good: str, bad: str) -> Verdict:
    """Judge the size of a violation. `null` is the mean and the 99% quantile of its null distribution.

    Fails if the lower limit exceeds both the null's quantile and the smallest `relevant` violation. Passes if the value
    is below the relevant one and the null could not have reached that by chance. Otherwise undecided.
    """
    mean, quantile = null
    limit = max(quantile, relevant)
    passed = None
    if estimate.low > limit:
        passed = False
        advice = bad
    elif estimate.value <= relevant and quantile <= relevant:
        passed = True
        advice = good
    elif quantile <= relevant:
        advice = (
            f"Undecided: the value exceeds the relevant {relevant:.3g}, but its interval does not. Give more pairs."
        )
    else:
        advice = (
            f"Undecided: with so few independent pairs, chance alone reaches {quantile:.3g}, above the relevant "
            f"{relevant:.3g}. Give more pairs or groups."
        )
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n, mean, limit)
    return Verdict(name, *numbers, direction="lower", passed=passed, advice=advice)


def mean_and_quantile(null: Iterable[float]) -> tuple[float, float]:
    """Mean and 99% quantile of null draws."""
    draws = np.fromiter(null, float)
    return float(np.mean(draws)), float(np.quantile(draws, 0.99))


def add_in_quadrature(null: tuple[float, float], relevant: float) -> float:
    """Expected norm of noise of the null's mean size plus a violation of the relevant size."""
    return float(np.hypot(max(null[0], 0.0), relevant))
