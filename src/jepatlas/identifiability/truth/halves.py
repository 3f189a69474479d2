"""Latents beside the states they come from, with the rows to fit on and the rows to score on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.core.linear import Split
from jepatlas.core.records import Estimate
from jepatlas.core.stats import bootstrap

__all__ = ["Halves"]


@dataclass(frozen=True)
class Halves:
    """Rows of h (b, d) and z (b, n); rows of one group are all on one side."""

    h: np.ndarray
    z: np.ndarray
    split: Split
    groups: np.ndarray | None = None

    def some(self, rows: int, rng: np.random.Generator) -> Halves:
        """At most so many rows of each half, drawn at random."""
        kept = [side if len(side) <= rows else np.sort(rng.permutation(side)[:rows]) for side in self.split]
        fit, every = len(kept[0]), np.concatenate(kept)
        groups = None if self.groups is None else self.groups[every]
        return Halves(self.h[every], self.z[every], Split(np.arange(fit), np.arange(fit, len(every))), groups)

    def estimates(
        self, statistic: Callable[[np.ndarray], Mapping[str, float]], rng: np.random.Generator, replicates: int
    ) -> dict[str, Estimate]:
        """Of a statistic of weights of the rows to score on, resampled by groups."""
        score = self.split.score
        held = None if self.groups is None else self.groups[score]
        return bootstrap(statistic, len(score), rng, groups=held, replicates=replicates)
