"""Trials over seeds: the same splits and draws at every point of a curve, so that points differ by the stress alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps.estimators import LeastSquaresMap, RobustMap
from jepatlas.alignment.paired import Progress
from jepatlas.alignment.splits import split_rows
from jepatlas.alignment.stress.curve import StressPoint
from jepatlas.alignment.stress.scores import MEASURES, Score, Scores
from jepatlas.alignment.stress.trial import Fits, LatentPairs, Run, Trial
from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split

__all__ = ["FITS", "Case", "Protocol", "divider", "run_cases"]

FITS: Fits = {"least squares": LeastSquaresMap(), "robust": RobustMap()}


@dataclass(frozen=True)
class Protocol:
    """How every point is measured."""

    seeds: int = 3
    """Each draws its own split, and whatever else is random."""
    shuffles: int = 2
    """Null fits in each trial."""
    held: float = 0.5
    """Share of groups to score on."""
    rows: int = 1000
    """Held-out rows at most whose neighbourhoods are compared."""
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"A stress curve needs at least 1 seed, but {self.seeds} was given.")
        if not 0 < self.held < 1:
            raise InputError(f"The share of rows to hold out must lie between 0 and 1, but {self.held} was given.")

    def draw(self, rng: np.random.Generator) -> list[int]:
        """A seed for each repetition."""
        return rng.integers(2**63, size=self.seeds).tolist()


def divider(latents: LatentPairs, split: Split | None, protocol: Protocol) -> Callable[[np.random.Generator], Split]:
    """The split that was given, or one by groups for each seed; drawn first, it is the same at every point."""
    n = len(latents.a)
    if split is None:
        return lambda own: split_rows(n, own, groups=latents.groups, share=protocol.held)
    rows = np.concatenate(split)
    if len(np.unique(rows)) < len(rows) or rows.min(initial=0) < 0 or rows.max(initial=-1) >= n:
        raise InputError(f"A split has rows 0 to {n - 1}, none on both sides or twice; this one has others.")
    return lambda _: split


@dataclass(frozen=True)
class Case:
    """A point to be measured: `trials` makes them of a seed's generator, by what is added to the names of fits."""

    x: float
    label: str
    trials: Callable[[np.random.Generator], Mapping[str, Trial]]


def run_cases(cases: Sequence[Case], fits: Fits, protocol: Protocol, seeds: Sequence[int]) -> tuple[StressPoint, ...]:
    if not fits:
        raise InputError("A stress curve needs at least one map estimator among its fits.")
    points, total = [], len(cases) * len(seeds)
    for case in cases:
        pairs, runs = [], []
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
