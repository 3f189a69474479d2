"""Stress curves: the scores of an alignment as conditions get worse, as a figure and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.records import Direction, Estimate
from jepatlas.core.stats import student_margin

__all__ = ["MEASURES", "Score", "Scores", "StressCurve", "StressMeasure", "StressPoint"]


@dataclass(frozen=True)
class StressMeasure:
    """A quantity measured on correct held-out pairs, of the map, or of the fitted pairs."""

    title: str
    direction: Direction
    meaning: str
    chance: str
    """Name of the chance level that it is compared with."""
    log: bool = False
    """Whether it is averaged and plotted on a logarithmic scale."""
    low: float = 0.0
    high: float = 1.0
    """Smallest and largest possible value; intervals are clipped to them."""


MEASURES: Mapping[str, StressMeasure] = {
    "r2": StressMeasure(
        "R²", "higher", "share of the target's held-out variance that the map predicts", "shuffled", low=-np.inf
    ),
    "nos_10_common": StressMeasure(
        "NOS@10", "lower", "share of the 10 nearest neighbours that differ, in the source's coordinates", "shuffled"
    ),
    "condition": StressMeasure("κ", "lower", "condition number of the map", "shuffled", log=True, low=1.0, high=np.inf),
    "distrusted": StressMeasure("distrusted", "lower", "share of the fitted pairs that the fit distrusts", "shuffled"),
    "recall": StressMeasure("recall", "higher", "share of the mismatched pairs that are distrusted", "random choice"),
    "precision": StressMeasure(
        "precision", "higher", "share of the distrusted pairs that are mismatched", "random choice"
    ),
    "source": StressMeasure("source probe", "higher", "accuracy of the source's probe on the source", "majority class"),
    "migrated": StressMeasure(
        "migrated probe", "higher", "accuracy of the migrated probe on the target", "majority class"
    ),
}


@dataclass(frozen=True)
class Score:
    """Mean over the seeds in which a measure is defined, with Student's interval, and its chance level.

    The interval covers other splits and draws from the same rows, not other data.
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
        """One value and one null per seed; with `log` they are logarithms. The interval is clipped to `limits`.

        >>> Score.of([0.5, 0.5, float("nan")], [0.0, 0.1, float("nan")])
        Score(estimate=Estimate(value=0.5, low=0.5, high=0.5, n=2), null=0.05)
        """
        defined = _defined(values)
        chance = _defined(nulls)
        mean = defined.mean() if len(defined) else np.nan
        null = chance.mean() if len(chance) else np.nan
        margin = student_margin(defined) if np.isfinite(defined).all() else np.nan  # a singular map has κ = ∞
        value, low, high, null = (
            float(np.exp(number) if log else number) for number in (mean, mean - margin, mean + margin, null)
        )
        low, high = np.maximum(low, limits[0]), np.minimum(high, limits[1])
        return cls(Estimate(value, float(low), float(high), len(defined)), null)


Scores = Mapping[str, Mapping[str, Score]]
"""Scores by fit and measure."""


def _defined(numbers: Sequence[float]) -> np.ndarray:
    return np.array([number for number in numbers if not np.isnan(number)])


@dataclass(frozen=True)
class StressPoint:
    """One point of a curve, with the scores of every fit."""

    x: float
    label: str
    pairs: int  # number of fitted pairs, mean over seeds
    scores: Scores


@dataclass(frozen=True)
class StressCurve:
    """Scores by the strength of the stress."""

    title: str
    label_title: str
    """What the labels of the points are."""
    points: tuple[StressPoint, ...]
    seeds: int
    x_title: str = ""
    """What x is, if it is not the label."""
    log_x: bool = False
    joined: bool = True
    """Whether the points are joined by a line."""

    @property
    def fits(self) -> list[str]:
        return list(dict.fromkeys(fit for point in self.points for fit in point.scores))

    @property
    def measures(self) -> list[str]:
        """Measures that some fit has at some point."""
        return [name for name in MEASURES if any(self.course(fit, name) for fit in self.fits)]

    def course(self, fit: str, measure: str) -> list[tuple[float, Score]]:
        """x and score at the points where this measure of this fit is defined."""
        found: list[tuple[float, Score]] = []
        for point in self.points:
            score = point.scores.get(fit, {}).get(measure)
            if score is not None and score.estimate.n:
                found.append((point.x, score))
        return found

    def figure(self, measure: str = "r2") -> Curves:
        """Every fit with its interval; chance levels are dashed."""
        self._check([measure])
        about = MEASURES[measure]
        courses = {fit: course for fit in self.fits if (course := self.course(fit, measure))}
        series = [_series(fit, course) for fit, course in courses.items()]
        chance = _chance(courses, about.chance)
        if self.joined:
            series += [replace(curve, dash=True) for curve in chance]
        else:
            series = [replace(curve, points=True) for curve in [*series, *chance]]
        return Curves(
            title=self.title,
            note=f"{about.meaning[0].upper()}{about.meaning[1:]}; {about.direction} is better. "
            f"Bands are 95% intervals of the mean over {self.seeds} seeds.",
            x_label=self.x_title or self.label_title,
            y_label=about.title,
            log_x=self.log_x,
            log_y=about.log,
            series=series,
        )

    def table(self, measures: Sequence[str] | None = None) -> Table:
        """One row per point and fit; every score with its chance level."""
        chosen = self.measures if measures is None else list(measures)
        self._check(chosen)
        heads = [f"{MEASURES[name].title} ({MEASURES[name].direction} is better)" for name in chosen]
        columns = [*self.point_columns, "pairs fitted", "fit", *heads]
        rows = [
            [*self.point_cells(point), str(point.pairs), fit, *(self._cell(scores.get(name), name) for name in chosen)]
            for point in self.points
            for fit, scores in point.scores.items()
        ]
        return Table(self.title, columns, rows)

    @property
    def point_columns(self) -> list[str]:
        """Column titles of `point_cells`."""
        return [self.label_title, self.x_title] if self.x_title else [self.label_title]

    def point_cells(self, point: StressPoint) -> list[str]:
        """The label of a point and, if it is another number, its x."""
        return [point.label, f"{point.x:.3g}"] if self.x_title else [point.label]

    def _check(self, measures: Sequence[str]) -> None:
        for name in measures:
            if name not in self.measures:
                raise InputError(f"'{self.title}' has no measure '{name}'. {did_you_mean(name, self.measures)}")

    def _cell(self, score: Score | None, measure: str) -> str:
        if score is None or not score.estimate.n:
            return "–"
        one = score.estimate
        form = ".3g" if MEASURES[measure].log else ".3f"
        part = f" ({one.n} of {self.seeds} seeds)" if one.n < self.seeds else ""
        interval = f" [{one.low:{form}}, {one.high:{form}}]" if np.isfinite(one.value) else ""  # κ = ∞ has none
        return f"{one.value:{form}}{interval}{part}; {MEASURES[measure].chance} {score.null:{form}}"


def _series(name: str, course: Sequence[tuple[float, Score]]) -> Curve:
    estimates = [score.estimate for _, score in course]
    series = Curve(name, [x for x, _ in course], [one.value for one in estimates])
    if np.isfinite([[one.low, one.high] for one in estimates]).any():
        return replace(series, low=[one.low for one in estimates], high=[one.high for one in estimates])
    return series


def _chance(courses: Mapping[str, Sequence[tuple[float, Score]]], name: str) -> list[Curve]:
    """One series if the chance level is the same for all fits, otherwise one per fit."""
    lines = {fit: tuple((x, score.null) for x, score in course) for fit, course in courses.items()}
    if len(set(lines.values())) == 1:
        lines = {"": next(iter(lines.values()))}
    return [
        Curve(f"{fit}, {name}" if fit else name, [x for x, _ in line], [null for _, null in line])
        for fit, line in lines.items()
    ]
