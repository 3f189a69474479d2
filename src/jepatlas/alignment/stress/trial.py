"""One trial: maps are fitted on some pairs and scored on other, right ones; then the same where b is shuffled.

It is shuffled in both parts. A map of shuffled pairs has a random part along the true one, which right pairs would
reward or punish: the mean of a few shuffles would be off by that.

Chance is known where it need not be drawn: a probe stands beside the rate of the commonest class, and the choice of
distrusted pairs beside a blind choice of as many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.alignment.maps.estimators import RidgeMap, RobustMap
from jepatlas.alignment.maps.fitted import FittedMap
from jepatlas.alignment.nulls import permutation_null
from jepatlas.alignment.paired import paired
from jepatlas.alignment.probes.migration import migrate
from jepatlas.alignment.probes.probe import LinearProbe, check_classes
from jepatlas.alignment.similarity.metrics import measure
from jepatlas.alignment.splits import group_labels
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, subsample

__all__ = ["Fits", "LatentPairs", "Run", "Trial", "shared_out"]

Fits = Mapping[str, FittedMap]
"""Map estimators by the name they are shown under; they are cloned, never fitted themselves."""

Run = dict[str, dict[str, tuple[float, float]]]
"""Value and chance by fit and measure; condition numbers by their logarithms."""


@dataclass(frozen=True)
class LatentPairs:
    """Rows of two models that belong together; labels are classes, rows of one group are alike."""

    a: np.ndarray  # (n, d_a)
    b: np.ndarray  # (n, d_b)
    labels: np.ndarray | None
    groups: np.ndarray  # (n,) numbers

    @classmethod
    def of(
        cls, a: np.ndarray, b: np.ndarray, labels: np.ndarray | None = None, groups: np.ndarray | None = None
    ) -> LatentPairs:
        a, b = paired(a, b, fewest=8)
        if labels is not None:
            labels = np.asarray(labels)
            if labels.shape != (len(a),):
                raise InputError(f"There must be one label for each of {len(a)} rows, but they are {labels.shape}.")
            check_classes(labels, "the rows")
        return cls(a, b, labels, group_labels(groups, len(a)))


@dataclass(frozen=True)
class Trial:
    """Pairs to fit on, rows to score on, and other rows to train the source's probe on."""

    latents: LatentPairs
    split: Split
    partners: np.ndarray
    """The row of b that each of `split.fit` is paired with, right or wrong."""
    probed: np.ndarray

    @classmethod
    def right(cls, latents: LatentPairs, split: Split, rng: np.random.Generator) -> Trial:
        """Every row with its own partner; where there are labels, the map has one half and the probe the other."""
        mapped, probed = shared_out(latents, split.fit, rng)
        return cls(latents, Split(mapped, split.score), mapped, probed)

    @cached_property
    def mismatched(self) -> np.ndarray:
        return self.partners != self.split.fit

    @cached_property
    def probe(self) -> LinearProbe | None:
        """None where there are no labels, or where the rows to train it on are of one class."""
        labels = self.latents.labels
        if labels is None or len(np.unique(labels[self.probed])) < 2:
            return None
        return LinearProbe.fit(self.latents.a[self.probed], labels[self.probed])

    def run(self, fits: Fits, rng: np.random.Generator, *, shuffles: int, rows: int) -> Run:
        """Fit and score; the same with `shuffles` of b. Neighbourhoods are those of so many `rows` at most."""
        latents, fit, found = self.latents, self.split.fit, Run()

        def statistic(order: np.ndarray) -> dict[str, float]:
            b, values = latents.b[order[self.partners]], dict[str, float]()
            for name, estimator in fits.items():
                fitted = _fitted(estimator, latents.a[fit], b, latents.groups[fit])
                measured = self._measure(fitted, order[self.split.score], rows)
                values |= {f"{name}/{key}": value for key, value in measured.items()}
            return values

        with np.errstate(invalid="ignore"):  # the spread of infinite condition numbers, which nothing reads
            nulls = permutation_null(
                statistic, len(latents.a), rng, directions="higher", groups=latents.groups, permutations=shuffles
            )
        for place, null in nulls.items():
            name, key = place.rsplit("/", 1)
            found.setdefault(name, {})[key] = null.value, null.mean
        return {name: values | self._known_chance(values) for name, values in found.items()}

    def _measure(self, fitted: FittedMap, partners: np.ndarray, rows: int) -> dict[str, float]:
        a, b = self.latents.a[self.split.score], self.latents.b[partners]
        some = subsample(np.arange(len(a)), rows)
        found = measure(a, b, fitted.map_, names=["r2"], limit=fitted.limit)
        found |= measure(a[some], b[some], fitted.map_, names=["nos_10_common"], limit=fitted.limit)
        found["condition"] = float(np.log(Conditioning.of(fitted.map_).condition))
        return found | self._choice(fitted) | self._accuracies(fitted, a, b)

    def _choice(self, fitted: FittedMap) -> dict[str, float]:
        """What the pairs that a robust fit distrusts are worth, against those that are mismatched."""
        if not isinstance(fitted, RobustMap):
            return {}
        chosen, wrong = fitted.distrusted_, self.mismatched
        found = {"distrusted": len(chosen) / len(wrong)}
        if not wrong.any():
            return found
        precision = float(wrong[chosen].mean()) if len(chosen) else np.nan
        return found | {"recall": float(wrong[chosen].sum() / wrong.sum()), "precision": precision}

    def _accuracies(self, fitted: FittedMap, a: np.ndarray, b: np.ndarray) -> dict[str, float]:
        if self.latents.labels is None:
            return {}
        if self.probe is None:
            return {"source": np.nan, "migrated": np.nan}
        truth = self.latents.labels[self.split.score]
        source = float(np.mean(self.probe.predict(a) == truth))
        try:
            moved = migrate(self.probe, fitted.map_, limit=fitted.limit, latents=self.latents.a[self.probed])
        except InputError:  # refused: the map does not carry what the probe reads
            return {"source": source, "migrated": np.nan}
        return {"source": source, "migrated": float(np.mean(moved.predict(b) == truth))}

    def _known_chance(self, values: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        chance = {"precision": float(self.mismatched.mean()), "recall": values.get("distrusted", (np.nan,))[0]}
        if self.latents.labels is not None:
            counts = np.unique(self.latents.labels[self.split.score], return_counts=True)[1]
            chance |= dict.fromkeys(("source", "migrated"), float(counts.max() / counts.sum()))
        return {key: (values[key][0], null) for key, null in chance.items() if key in values}


def shared_out(latents: LatentPairs, rows: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the map and rows for the probe; all for the map where there are no labels.

    On the same rows both would overfit the same noise, and labels would pass through a map of unrelated models.
    """
    if latents.labels is None:
        return rows, rows[:0]
    mapped, probed = hold_out(len(rows), rng, groups=latents.groups[rows])
    return rows[mapped], rows[probed]


def _fitted(estimator: FittedMap, a: np.ndarray, b: np.ndarray, groups: np.ndarray) -> FittedMap:
    fresh: Any = clone(estimator)
    return fresh.fit(a, b, groups) if isinstance(fresh, RidgeMap) else fresh.fit(a, b)
