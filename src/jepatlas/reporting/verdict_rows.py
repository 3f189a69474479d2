"""Verdicts as rows of the page: formatted numbers, status symbols, gauges, and comparisons between runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepatlas.core.records import Status, Verdict
from jepatlas.core.verdict_names import plain_name
from jepatlas.reporting.chapters import Chapter

__all__ = ["ComparisonRow", "Gauge", "VerdictRow", "compare", "number", "tally", "verdict_row"]

SYMBOLS: dict[Status, str] = {"passed": "✓", "failed": "✗", "undecided": "?", "informational": "○"}


@dataclass(frozen=True)
class Gauge:
    """Positions on a line from 0 to 100; `good` is the range that passes."""

    low: float
    high: float
    value: float
    null: float | None
    threshold: float | None
    good: tuple[float, float] | None


@dataclass(frozen=True)
class VerdictRow:
    """A verdict as formatted text; `label` is the plain name of its code, `name`."""

    name: str
    label: str
    status: Status
    symbol: str
    value: str
    interval: str
    n: str
    null: str
    threshold: str
    advice: str
    gauge: Gauge | None


@dataclass(frozen=True)
class ComparisonRow:
    """One verdict name across runs; a run may have none or several verdicts of that name."""

    label: str
    cells: tuple[tuple[VerdictRow, ...], ...]

    @property
    def plain(self) -> str:
        """The plain name, with the chapter if the label has it."""
        name = next(row.name for rows in self.cells for row in rows)
        return plain_name(name) + self.label.removeprefix(name)

    @property
    def judged(self) -> bool:
        """Whether a run has a threshold for it."""
        return any(row.status != "informational" for rows in self.cells for row in rows)


def verdict_row(verdict: Verdict) -> VerdictRow:
    sign = "≥" if verdict.direction == "higher" else "≤"
    if verdict.threshold is None:
        threshold = f"none; {verdict.direction} is better"
    else:
        threshold = f"{sign} {number(verdict.threshold)}"
    return VerdictRow(
        name=verdict.name,
        label=plain_name(verdict.name),
        status=verdict.status,
        symbol=SYMBOLS[verdict.status],
        value=number(verdict.value),
        interval=f"[{number(verdict.low)}, {number(verdict.high)}]",
        n=f"{verdict.n:,}",
        null="" if verdict.null is None else number(verdict.null),
        threshold=threshold,
        advice=verdict.advice,
        gauge=_gauge(verdict),
    )


def number(value: float) -> str:
    """A number with four significant digits and typographic signs.

    >>> number(-0.123456), number(float("inf")), number(float("nan"))
    ('−0.1235', '∞', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    if value < 0:
        return f"−{number(-value)}"
    return "∞" if math.isinf(value) else f"{abs(value):.4g}"


def tally(verdicts: Sequence[Verdict]) -> list[tuple[str, str, int]]:
    """How many of each status, as (symbol, status, count)."""
    counts = Counter(verdict.status for verdict in verdicts)
    return [(symbol, status, counts[status]) for status, symbol in SYMBOLS.items() if counts[status]]


def compare(runs: Mapping[str, Sequence[Chapter]]) -> list[ComparisonRow]:
    """Rows are verdict names, cells are runs. The chapter is added to names that one run uses in several chapters."""
    named = {run: [(c.title, v) for c in chapters for v in c.verdicts] for run, chapters in runs.items()}
    ambiguous: set[str] = set()
    for verdicts in named.values():
        ambiguous |= _names_in_several_chapters(verdicts)
    table: dict[str, dict[str, list[VerdictRow]]] = {}
    for run, verdicts in named.items():
        for chapter, verdict in verdicts:
            label = f"{verdict.name} ({chapter})" if verdict.name in ambiguous else verdict.name
            table.setdefault(label, {}).setdefault(run, []).append(verdict_row(verdict))
    return [ComparisonRow(label, tuple(tuple(cells.get(run, ())) for run in runs)) for label, cells in table.items()]


def _names_in_several_chapters(verdicts: Sequence[tuple[str, Verdict]]) -> set[str]:
    chapters: dict[str, set[str]] = {}
    for chapter, verdict in verdicts:
        chapters.setdefault(verdict.name, set()).add(chapter)
    return {name for name, titles in chapters.items() if len(titles) > 1}


def _gauge(verdict: Verdict) -> Gauge | None:
    marks = [verdict.low, verdict.high, verdict.value, verdict.null, verdict.threshold]
    known = [mark for mark in marks if mark is not None]
    has_reference = verdict.null is not None or verdict.threshold is not None
    if not has_reference or not all(map(math.isfinite, known)):
        return None
    start, span = min(known), max(known) - min(known)

    def place(mark: float) -> float:
        return round(8 + 84 * (mark - start) / span, 2) if span else 50.0

    threshold = None if verdict.threshold is None else place(verdict.threshold)
    good = None
    if threshold is not None:
        good = (threshold, 100.0) if verdict.direction == "higher" else (0.0, threshold)
    null = None if verdict.null is None else place(verdict.null)
    return Gauge(place(verdict.low), place(verdict.high), place(verdict.value), null, threshold, good)
