"""What is measured under stress, and a number over seeds beside what chance gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from jepatlas.core.records import Direction, Estimate

__all__ = ["MEASURES", "Score", "Scores", "StressMeasure"]


@dataclass(frozen=True)
class StressMeasure:
    """Taken on held-out rows whose pairs are right, of the map, or of the pairs that were fitted."""

    title: str
    direction: Direction
    meaning: str
    chance: str
    """What it stands beside."""
    log: bool = False
    """Whether it is averaged by its logarithm, and shown on such an axis."""
    low: float = 0.0
    high: float = 1.0
    """The least and the largest value there can be: no interval goes beyond."""


MEASURES: Mapping[str, StressMeasure] = {
    "r2": StressMeasure(
        "R²", "higher", "share of the target's held-out variance that the map predicts", "shuffled", low=-np.inf
    ),
    "nos_10_common": StressMeasure(
        "NOS@10", "lower", "share of the 10 nearest that are not the same, in the source's coordinates", "shuffled"
    ),
    "condition": StressMeasure("κ", "lower", "condition number of the map", "shuffled", log=True, low=1.0, high=np.inf),
    "distrusted": StressMeasure("distrusted", "lower", "share of the fitted pairs that the fit distrusts", "shuffled"),
    "recall": StressMeasure("recall", "higher", "share of the mismatched pairs that are distrusted", "blind choice"),
    "precision": StressMeasure("precision", "higher", "share of distrusted pairs that are mismatched", "blind choice"),
    "source": StressMeasure(
        "source probe", "higher", "accuracy of the source's probe on the source", "commonest class"
    ),
    "migrated": StressMeasure(
        "migrated probe", "higher", "accuracy of that probe on the target, through the map", "commonest class"
    ),
}


@dataclass(frozen=True)
class Score:
    """The mean over seeds in which it is defined (n of them) with Student's interval, and what chance gives.

    The interval says what other splits and draws from the same rows would change, and nothing about other data.
    """

    estimate: Estimate
    null: float

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        nulls: Sequence[float],
        *,
        log: bool = False,
        limits: tuple[float, float] = (-np.inf, np.inf),
    ) -> Score:
        """One value and one null for each seed; `log` takes logarithms back. The interval ends at the `limits`.

        >>> Score.of([0.5, 0.5, float("nan")], [0.0, 0.1, float("nan")])
        Score(estimate=Estimate(value=0.5, low=0.5, high=0.5, n=2), null=0.05)
        """
        defined, chance = (
            np.array([number for number in numbers if not np.isnan(number)]) for numbers in (values, nulls)
        )
        mean, null = (numbers.mean() if len(numbers) else np.nan for numbers in (defined, chance))
        low, high = mean - (reach := _reach(defined)), mean + reach
        value, low, high, null = (float(np.exp(number) if log else number) for number in (mean, low, high, null))
        low, high = np.maximum(low, limits[0]), np.minimum(high, limits[1])
        return cls(Estimate(value, float(low), float(high), len(defined)), null)


def _reach(values: np.ndarray) -> float:
    if not np.isfinite(values).all():  # a singular map has κ = ∞ in every way
        return np.nan
    if len(values) < 2:
        return np.inf  # one seed claims nothing
    return stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values))


Scores = Mapping[str, Mapping[str, Score]]
"""By the name of the fit, and by that of the measure."""
