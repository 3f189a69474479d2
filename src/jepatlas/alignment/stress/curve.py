"""A stress curve: what is left of an alignment as something gets worse, as a figure and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.alignment.stress.scores import MEASURES, Score, Scores
from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["StressCurve", "StressPoint"]

Course = list[tuple[float, Score]]


@dataclass(frozen=True)
class StressPoint:
    """One point of a curve, with every fit at it."""

    x: float
    label: str
    pairs: int  # fitted, by the mean over seeds
    scores: Scores


@dataclass(frozen=True)
class StressCurve:
    """Points by what stresses the alignment."""

    title: str
    named: str
    """What the points are labelled by."""
    points: tuple[StressPoint, ...]
    seeds: int
    apart: str = ""
    """What x is, where it is not the label."""
    log_x: bool = False
    joined: bool = True
    """Whether the points lie on a line."""

    @property
    def fits(self) -> list[str]:
        return list(dict.fromkeys(fit for point in self.points for fit in point.scores))

    @property
    def measures(self) -> list[str]:
        """Those that some fit has at some point."""
        return [name for name in MEASURES if any(self.course(fit, name) for fit in self.fits)]

    def course(self, fit: str, measure: str) -> Course:
        """x and score at the points where the fit has this measure."""
        found = [(point.x, point.scores[fit][measure]) for point in self.points if measure in point.scores.get(fit, {})]
        return [(x, score) for x, score in found if score.estimate.n]

    def figure(self, measure: str = "r2") -> dict[str, Any]:
        """A figure of kind `curves`: every fit with its interval, and chance in broken lines."""
        self._check([measure])
        about = MEASURES[measure]
        courses = {fit: course for fit in self.fits if (course := self.course(fit, measure))}
        style = {} if self.joined else {"points": True}
        return {
            "kind": "curves",
            "title": self.title,
            "note": f"{about.meaning[0].upper()}{about.meaning[1:]}; {about.direction} is better. "
            f"Bands are 95% intervals of the mean over {self.seeds} seeds.",
            "x_label": self.apart or self.named,
            "y_label": about.title,
            "log_x": self.log_x,
            "log_y": about.log,
            "series": [
                *(_series(fit, course) | style for fit, course in courses.items()),
                *(series | (style or {"dash": True}) for series in _chance(courses, about.chance)),
            ],
        }

    def table(self, measures: Sequence[str] | None = None) -> dict[str, Any]:
        """One row for each point and fit; no number stands without what chance gives."""
        chosen = self.measures if measures is None else list(measures)
        self._check(chosen)
        heads = [f"{MEASURES[name].title} ({MEASURES[name].direction} is better)" for name in chosen]
        columns = [self.named, *([self.apart] if self.apart else []), "pairs fitted", "fit", *heads]
        rows = [
            [point.label, *([f"{point.x:.3g}"] if self.apart else []), str(point.pairs), fit]
            + [self._cell(scores.get(name), name) for name in chosen]
            for point in self.points
            for fit, scores in point.scores.items()
        ]
        return {"title": self.title, "columns": columns, "rows": rows}

    def _check(self, measures: Sequence[str]) -> None:
        for name in measures:
            if name not in self.measures:
                raise InputError(f"'{self.title}' has no measure '{name}'. {did_you_mean(name, self.measures)}")

    def _cell(self, score: Score | None, measure: str) -> str:
        if score is None or not score.estimate.n:
            return "–"
        one, shape = score.estimate, ".3g" if MEASURES[measure].log else ".3f"
        value, low, high, null = (f"{number:{shape}}" for number in (one.value, one.low, one.high, score.null))
        part = f" ({one.n} of {self.seeds} seeds)" if one.n < self.seeds else ""
        interval = f" [{low}, {high}]" if np.isfinite(one.value) else ""  # κ = ∞ has none
        return f"{value}{interval}{part}; {MEASURES[measure].chance} {null}"


def _series(name: str, course: Course) -> dict[str, Any]:
    estimates = [score.estimate for _, score in course]
    series: dict[str, Any] = {"name": name, "x": [x for x, _ in course], "y": [one.value for one in estimates]}
    if np.isfinite([[one.low, one.high] for one in estimates]).any():
        series |= {"low": [one.low for one in estimates], "high": [one.high for one in estimates]}
    return series


def _chance(courses: dict[str, Course], name: str) -> list[dict[str, Any]]:
    """One series where chance is the same for all fits, else one for each."""
    lines = {fit: tuple((x, score.null) for x, score in course) for fit, course in courses.items()}
    if len(set(lines.values())) == 1:
        lines = {"": next(iter(lines.values()))}
    return [
        {"name": f"{fit}, {name}" if fit else name, "x": [x for x, _ in line], "y": [null for _, null in line]}
        for fit, line in lines.items()
    ]
