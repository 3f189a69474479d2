"""Fit and score halves of (latents, states)."""

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
    """Rows of h (b, d) and z (b, n), split into rows to fit on and rows to score on. Groups are never split."""

    h: np.ndarray
    z: np.ndarray
    split: Split
    groups: np.ndarray | None = None

    def subsampled(self, rows: int, rng: np.random.Generator) -> Halves:
        """At most `rows` random rows of each half."""
        kept = [side if len(side) <= rows else np.sort(rng.permutation(side)[:rows]) for side in self.split]
        fit = len(kept[0])
        indices = np.concatenate(kept)
        groups = None if self.groups is None else self.groups[indices]
        split = Split(np.arange(fit), np.arange(fit, len(indices)))
        return Halves(self.h[indices], self.z[indices], split, groups)

    def estimates(
        self, statistic: Callable[[np.ndarray], Mapping[str, float]], rng: np.random.Generator, replicates: int
    ) -> dict[str, Estimate]:
        """Group-bootstrap intervals of a statistic of weights of the score rows."""
        score = self.split.score
        groups = None if self.groups is None else self.groups[score]
        return bootstrap(statistic, len(score), rng, groups=groups, replicates=replicates)
