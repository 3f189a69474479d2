"""Stress trials: maps fitted on stressed pairs, scored on correct held-out pairs, over several seeds.

Every seed uses the same split and random draws at every point of a curve, so points differ by the stress alone.

The null shuffles b in the fitted and in the scored pairs. A map of shuffled pairs has a random component along the true
map; scored on true pairs, the mean of a few shuffles would depend on that component.

Where chance level is known, it is not sampled: probes are compared with the majority class, and distrusted pairs with a
random choice of as many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from jepatlas.alignment.evidence import HeldOut
from jepatlas.alignment.maps import Conditioning, FittedMap, LeastSquaresMap, RidgeMap, RobustMap
from jepatlas.alignment.paired import PairedLatents, Progress
from jepatlas.alignment.probes.linear_probe import LinearProbe, check_classes
from jepatlas.alignment.probes.probe_migration import migrate
from jepatlas.alignment.similarity.similarity_metrics import measure
from jepatlas.alignment.splits import group_labels, split_rows
from jepatlas.alignment.stress.stress_curve import MEASURES, Score, Scores, StressPoint
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, subsample

__all__ = ["FITS", "Case", "Fits", "Protocol", "Trial", "run_cases", "split_by_seed", "split_for_probe", "stress_pairs"]

Fits = Mapping[str, FittedMap]
"""Map estimators by display name. They are cloned before fitting."""

FITS: Fits = {"least squares": LeastSquaresMap(), "robust": RobustMap()}

FEWEST = 8

Run = dict[str, dict[str, tuple[float, float]]]
"""Value and chance level by fit and measure; condition numbers as logarithms."""


@dataclass(frozen=True)
class Protocol:
    """How every point of a stress curve is measured."""

    seeds: int = 3
    """Number of repetitions, each with its own split and draws."""
    shuffles: int = 2
    """Null fits per repetition."""
    held: float = 0.5
    """Share of groups to score on."""
    rows: int = 1000
    """Largest number of held-out rows whose neighbourhoods are compared."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"'seeds' must be at least 1, but {self.seeds} was given.")
        if not 0 < self.held < 1:
            raise InputError(f"'held', the share of rows to hold out, must be in (0, 1), but {self.held} was given.")

    def draw(self, rng: np.random.Generator) -> list[int]:
        """One seed per repetition."""
        return rng.integers(2**63, size=self.seeds).tolist()


def stress_pairs(
    a: np.ndarray, b: np.ndarray, labels: np.ndarray | None = None, groups: np.ndarray | None = None
) -> PairedLatents:
    """Paired latents with numbered groups and, if given, checked class labels."""
    if labels is not None:
        labels = np.asarray(labels)
        if labels.shape != (len(a),):
            raise InputError(f"'labels' must have one entry for each of {len(a)} rows, but has shape {labels.shape}.")
        check_classes(labels, "the rows")
    return PairedLatents.of(a, b, labels=labels, groups=group_labels(groups, len(a)), fewest=FEWEST)


@dataclass(frozen=True)
class Trial:
    """Pairs to fit on, rows to score on, and separate rows to train the source's probe on."""

    latents: PairedLatents
    split: Split
    partners: np.ndarray
    """The row of b that each row of `split.fit` is paired with, correct or not."""
    probe_rows: np.ndarray

    @classmethod
    def correct(cls, latents: PairedLatents, split: Split, rng: np.random.Generator) -> Trial:
        """All pairs correct. With labels, half of the fit rows train the map and half the probe."""
        map_rows, probe_rows = split_for_probe(latents, split.fit, rng)
        return cls(latents, Split(map_rows, split.score), map_rows, probe_rows)

    @cached_property
    def mismatched(self) -> np.ndarray:
        return self.partners != self.split.fit

    @cached_property
    def probe(self) -> LinearProbe | None:
        """The source's probe; None without labels or if its rows have one class only."""
        labels = self.latents.labels
        if labels is None or len(np.unique(labels[self.probe_rows])) < 2:
            return None
        return LinearProbe.fit(self.latents.a.h[self.probe_rows], labels[self.probe_rows])

    def run(self, fits: Fits, rng: np.random.Generator, *, shuffles: int, rows: int) -> Run:
        """Values and chance levels; neighbourhoods are compared on at most `rows` rows."""

        def fit(fit_rows: np.ndarray, partners: np.ndarray) -> dict[str, FittedMap]:
            return {name: self._fitted(estimator, fit_rows, partners) for name, estimator in fits.items()}

        def score(models: dict[str, FittedMap], score_rows: np.ndarray, partners: np.ndarray) -> dict[str, float]:
            values: dict[str, float] = {}
            for name, fitted in models.items():
                measured = self._measure(fitted, score_rows, partners, rows)
                values |= {f"{name}/{key}": value for key, value in measured.items()}
            return values

        held_out = HeldOut(
            n=len(self.latents),
            split=self.split,
            fit=fit,
            score=score,
            refit=True,
            groups=self.latents.groups,
            partners=self.partners,
        )
        with np.errstate(invalid="ignore"):  # standard deviations of infinite condition numbers, which are not used
            nulls = held_out.null(rng, directions="higher", permutations=shuffles)
        found = Run()
        for place, null in nulls.items():
            name, key = place.rsplit("/", 1)
            found.setdefault(name, {})[key] = null.value, null.mean
        return {name: values | self._known_chance(values) for name, values in found.items()}

    def _fitted(self, estimator: FittedMap, rows: np.ndarray, partners: np.ndarray) -> FittedMap:
        fresh: Any = clone(estimator)
        a, b = self.latents.a.h[rows], self.latents.b.h[partners]
        if isinstance(fresh, RidgeMap):
            groups = self.latents.groups
            assert groups is not None  # see `stress_pairs`
            return fresh.fit(a, b, groups[rows])
        return fresh.fit(a, b)

    def _measure(self, fitted: FittedMap, score_rows: np.ndarray, partners: np.ndarray, rows: int) -> dict[str, float]:
        a, b = self.latents.a.h[score_rows], self.latents.b.h[partners]
        some = subsample(np.arange(len(a)), rows)
        found = measure(a, b, fitted.map_, names=["r2"], limit=fitted.limit)
        found |= measure(a[some], b[some], fitted.map_, names=["nos_10_common"], limit=fitted.limit)
        found["condition"] = float(np.log(Conditioning.of(fitted.map_).condition))
        return found | self._rejection(fitted) | self._accuracies(fitted, a, b)

    def _rejection(self, fitted: FittedMap) -> dict[str, float]:
        """How well the pairs that a robust fit distrusts match those that are mismatched."""
        if not isinstance(fitted, RobustMap):
            return {}
        chosen, wrong = fitted.distrusted_, self.mismatched
        found = {"distrusted": len(chosen) / len(wrong)}
        if not wrong.any():
            return found
        precision = float(wrong[chosen].mean()) if len(chosen) else np.nan
        return found | {"recall": float(wrong[chosen].sum() / wrong.sum()), "precision": precision}

    def _accuracies(self, fitted: FittedMap, a: np.ndarray, b: np.ndarray) -> dict[str, float]:
        """Accuracy of the source's probe on the source and, migrated through the map, on the target."""
        if self.latents.labels is None:
            return {}
        if self.probe is None:
            return {"source": np.nan, "migrated": np.nan}
        truth = self.latents.labels[self.split.score]
        source = float(np.mean(self.probe.predict(a) == truth))
        try:
            moved = migrate(self.probe, fitted.map_, limit=fitted.limit, latents=self.latents.a.h[self.probe_rows])
        except InputError:  # the map does not carry the directions that the probe reads
            return {"source": source, "migrated": np.nan}
        return {"source": source, "migrated": float(np.mean(moved.predict(b) == truth))}

    def _known_chance(self, values: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        """The measures whose chance level is known, with that level."""
        chance = {"precision": float(self.mismatched.mean()), "recall": values.get("distrusted", (np.nan,))[0]}
        if self.latents.labels is not None:
            counts = np.unique(self.latents.labels[self.split.score], return_counts=True)[1]
            chance |= dict.fromkeys(("source", "migrated"), float(counts.max() / counts.sum()))
        return {key: (values[key][0], null) for key, null in chance.items() if key in values}


def split_for_probe(
    latents: PairedLatents, rows: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the map and rows for the probe; without labels all rows are for the map.

    On the same rows both would fit the same noise, and labels would leak between unrelated models.
    """
    if latents.labels is None:
        return rows, rows[:0]
    groups = latents.groups
    assert groups is not None  # see `stress_pairs`
    map_rows, probe_rows = hold_out(len(rows), rng, groups=groups[rows])
    return rows[map_rows], rows[probe_rows]


def split_by_seed(
    latents: PairedLatents, split: Split | None, protocol: Protocol
) -> Callable[[np.random.Generator], Split]:
    """The given split, or one by groups per seed; drawn first, it is the same at every point of a curve."""
    n = len(latents)
    if split is None:
        return lambda rng: split_rows(n, rng, groups=latents.groups, share=protocol.held)
    rows = np.concatenate(split)
    if len(np.unique(rows)) < len(rows) or rows.min(initial=0) < 0 or rows.max(initial=-1) >= n:
        raise InputError(f"'split' must have rows from 0 to {n - 1}, each at most once and on one side only.")
    return lambda rng: split


@dataclass(frozen=True)
class Case:
    """A point to be measured. `trials` makes its trials for one seed, by a suffix for the names of the fits."""

    x: float
    label: str
    trials: Callable[[np.random.Generator], Mapping[str, Trial]]


def run_cases(cases: Sequence[Case], fits: Fits, protocol: Protocol, seeds: Sequence[int]) -> tuple[StressPoint, ...]:
    """Run every case with every seed and average over the seeds."""
    if not fits:
        raise InputError("'fits' must have at least one map estimator.")
    points: list[StressPoint] = []
    total = len(cases) * len(seeds)
    for case in cases:
        pairs: list[int] = []
        runs: list[Run] = []
        for seed in seeds:
            rng, run = np.random.default_rng(seed), Run()
            for suffix, trial in case.trials(rng).items():
                found = trial.run(fits, rng, shuffles=protocol.shuffles, rows=protocol.rows)
                run |= {f"{fit}{suffix}": values for fit, values in found.items()}
                pairs.append(len(trial.split.fit))
            runs.append(run)
            if protocol.progress is not None:
                protocol.progress(len(points) * len(seeds) + len(runs), total)
        points.append(StressPoint(case.x, case.label, round(np.mean(pairs)), _over_seeds(runs)))
    return tuple(points)


def _over_seeds(runs: Sequence[Run]) -> Scores:
    def score(fit: str, name: str) -> Score:
        values, nulls = zip(*(run[fit][name] for run in runs), strict=True)
        kind = MEASURES[name]
        return Score.of(values, nulls, log=kind.log, limits=(kind.low, kind.high))

    return {fit: {name: score(fit, name) for name in runs[0][fit]} for fit in runs[0]}
