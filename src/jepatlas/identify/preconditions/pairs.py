"""Pairs in coordinates of unit covariance, and how an assumption about them is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.base.stats import bootstrap
from jepatlas.identify.dimension.rank import PrincipalAxes

__all__ = ["DRAWS", "WhitePairs", "judge", "quantiles"]

DRAWS = 200


@dataclass(frozen=True)
class WhitePairs:
    """Pairs in coordinates of unit covariance, with the randomness that their nulls and intervals need."""

    h: np.ndarray
    h_next: np.ndarray
    labels: np.ndarray
    seed: int

    @classmethod
    def of(cls, h: np.ndarray, h_next: np.ndarray, axes: PrincipalAxes, groups: np.ndarray | None, seed: int) -> Self:
        labels = np.arange(len(h)) if groups is None else np.unique(groups, return_inverse=True)[1]
        # symmetric, where nothing is left out: coordinates stay as near to the given ones as can be
        turn = axes.vectors.T if len(axes.values) == h.shape[1] else np.eye(len(axes.values))
        return cls(axes.whitener.apply(h) @ turn, axes.whitener.apply(h_next) @ turn, labels, seed)

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
        return WhitePairs(self.h[kept], self.h_next[kept], labels, self.seed)

    def estimate(self, name: str, statistic: Callable[[np.ndarray], float]) -> Estimate:
        """Of a statistic of row weights."""
        draws = bootstrap(
            lambda w: {name: statistic(w)}, len(self.h), self.rng(name), groups=self.labels, replicates=DRAWS
        )
        return draws[name]


def judge(name: str, estimate: Estimate, null: tuple[float, float], matters: float, advice: tuple[str, str]) -> Verdict:
    """`null` is its mean and its 99% quantile, `advice` what to say of a pass and of a failure."""
    limit = max(null[1], matters)
    passed = bool(estimate.low <= limit)
    numbers = (estimate.value, estimate.low, estimate.high, estimate.n, null[0], limit)
    return Verdict(name, *numbers, direction="lower", passed=passed, advice=advice[not passed])


def quantiles(null: list[float]) -> tuple[float, float]:
    return float(np.mean(null)), float(np.quantile(null, 0.99))
