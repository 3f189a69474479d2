"""Pairs in coordinates of unit covariance, and how an assumption about them is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.identifiability.dimension.rank import PrincipalAxes

__all__ = ["DRAWS", "WhitePairs", "beside", "judge", "quantiles"]

DRAWS = 200


@dataclass(frozen=True)
class WhitePairs:
    """Pairs in coordinates of unit covariance, with the randomness that their nulls and intervals need."""

    h: np.ndarray  # (b, r)
    h_next: np.ndarray  # (b, r)
    given: np.ndarray  # (b, m): the coordinates of h that vary, as they came
    columns: np.ndarray  # (m,): where in h they are
    labels: np.ndarray  # (b,)
    seed: int

    @classmethod
    def of(cls, h: np.ndarray, h_next: np.ndarray, axes: PrincipalAxes, groups: np.ndarray | None, seed: int) -> Self:
        labels = np.arange(len(h)) if groups is None else np.unique(groups, return_inverse=True)[1]
        # symmetric, where nothing is left out: coordinates stay as near to the given ones as can be
        turn = axes.vectors.T if len(axes.values) == h.shape[1] else np.eye(len(axes.values))
        varies, white = np.flatnonzero(axes.units), axes.whitener
        return cls(white.apply(h) @ turn, white.apply(h_next) @ turn, h[:, varies], varies, labels, seed)

    @property
    def groups(self) -> int:
        return int(self.labels.max()) + 1

    def rng(self, name: str) -> np.random.Generator:
        return numpy_generator(self.seed, f"audit/{name}")

    def some(self, rows: int) -> WhitePairs:
        """Random groups, about so many rows of them."""
        order = self.rng("rows").permutation(self.groups)
        sizes = np.cumsum(np.bincount(self.labels)[order])
        kept = np.isin(self.labels, order[: np.searchsorted(sizes, rows) + 1])
        labels = np.unique(self.labels[kept], return_inverse=True)[1]
        return WhitePairs(self.h[kept], self.h_next[kept], self.given[kept], self.columns, labels, self.seed)

    def estimate(self, name: str, statistic: Callable[[np.ndarray], float], least: float = -np.inf) -> Estimate:
        """Of a statistic of row weights that is never below `least`."""
        return self.estimates(name, lambda weights: {name: statistic(weights)}, {name: least})[name]

    def estimates(
        self, name: str, statistic: Callable[[np.ndarray], Mapping[str, float]], least: Mapping[str, float]
    ) -> dict[str, Estimate]:
        """The interval is centred at the value, which has the bias of one sample, as the null has."""
        draws = bootstrap(statistic, len(self.h), self.rng(name), groups=self.labels, replicates=DRAWS, centred=True)
        return {key: replace(found, low=max(found.low, least[key])) for key, found in draws.items()}

    def signs(self, name: str) -> Iterator[np.ndarray]:
        """Random signs of the rows, one for all rows of a group: what has no mean is as likely with any of them."""
        rng = self.rng(name)
        return (rng.choice([-1.0, 1.0], self.groups)[self.labels] for _ in range(DRAWS))


def judge(name: str, estimate: Estimate, null: tuple[float, float], matters: float, advice: tuple[str, str]) -> Verdict:
    """`null` is its mean and its 99% quantile, `advice` what to say of a pass and of a failure.

    It fails on evidence: where even the lower end of the interval is above the null and above what matters. It passes
    where the value is below what matters, and chance alone could not have made it as large as that. Else it is open.
    """
    limit, passed = max(null[1], matters), None
    if estimate.low > limit:
        passed = False
    elif estimate.value <= matters and null[1] <= matters:
        passed = True
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n, null[0], limit)
    said = _open(null[1], matters) if passed is None else advice[not passed]
    return Verdict(name, *numbers, direction="lower", passed=passed, advice=said)


def _open(chance: float, matters: float) -> str:
    if chance <= matters:
        return f"Undecided: the value is above {matters:.3g}, which would matter, but not surely. More pairs will tell."
    return (
        f"Undecided: in so few independent pairs chance alone gives up to {chance:.3g}, and {matters:.3g} would matter."
        " More pairs (or groups) will tell."
    )


def quantiles(null: Iterable[float]) -> tuple[float, float]:
    draws = np.fromiter(null, float)
    return float(np.mean(draws)), float(np.quantile(draws, 0.99))


def beside(null: tuple[float, float], matters: float) -> float:
    """What a norm is where noise has the size of the null and the violation one that matters: squares add up."""
    return float(np.hypot(max(null[0], 0.0), matters))
