"""Verdicts as a person reads them: symbol and word, value with interval, and where it lies against its threshold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jepatlas.core.records import Verdict
from jepatlas.reporting.chapters import Chapter

__all__ = ["ComparisonRow", "Gauge", "VerdictRow", "compare", "number", "tally", "verdict_row"]

SYMBOLS = {"passed": "✓", "failed": "✗", "informational": "○"}


@dataclass(frozen=True)
class Gauge:
    """Positions on a line from 0 to 100; `good` is the stretch that the threshold allows."""

    low: float
    high: float
    value: float
    null: float | None
    threshold: float | None
    good: tuple[float, float] | None


@dataclass(frozen=True)
class VerdictRow:
    """A verdict in words."""

    name: str
    status: str
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
    """One verdict name across runs; a run may have none or several of it."""

    label: str
    cells: tuple[tuple[VerdictRow, ...], ...]


def verdict_row(verdict: Verdict) -> VerdictRow:
    status = {True: "passed", False: "failed", None: "informational"}[verdict.passed]
    sign = "≥" if verdict.direction == "higher" else "≤"
    return VerdictRow(
        name=verdict.name,
        status=status,
        symbol=SYMBOLS[status],
        value=number(verdict.value),
        interval=f"[{number(verdict.low)}, {number(verdict.high)}]",
        n=f"{verdict.n:,}",
        null="" if verdict.null is None else number(verdict.null),
        threshold=f"{sign} {number(verdict.threshold)}"
        if verdict.threshold is not None
        else f"none; {verdict.direction} is better",
        advice=verdict.advice,
        gauge=_gauge(verdict),
    )


def number(value: float) -> str:
    """Four digits, with signs as in print.

    >>> number(-0.123456), number(float("inf")), number(float("nan"))
    ('−0.1235', '∞', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return ("∞" if math.isinf(value) else f"{abs(value):.4g}") if value >= 0 else f"−{number(-value)}"


def tally(verdicts: Sequence[Verdict]) -> list[tuple[str, str, int]]:
    """How many of each status, as (symbol, status, count)."""
    counts = Counter(verdict_row(verdict).status for verdict in verdicts)
    return [(symbol, status, counts[status]) for status, symbol in SYMBOLS.items() if counts[status]]


def compare(runs: Mapping[str, Sequence[Chapter]]) -> list[ComparisonRow]:
    """Rows are verdict names, cells are runs. A name that one run uses in two chapters is told apart by the chapter."""
    named = {run: [(c.title, v) for c in chapters for v in c.verdicts] for run, chapters in runs.items()}
    ambiguous = {
        name
        for verdicts in named.values()
        for name, chapters in _chapters_by_name(verdicts).items()
        if len(chapters) > 1
    }
    table: dict[str, dict[str, list[VerdictRow]]] = {}
    for run, verdicts in named.items():
        for chapter, verdict in verdicts:
            label = f"{verdict.name} ({chapter})" if verdict.name in ambiguous else verdict.name
            table.setdefault(label, {}).setdefault(run, []).append(verdict_row(verdict))
    return [ComparisonRow(label, tuple(tuple(cells.get(run, ())) for run in runs)) for label, cells in table.items()]


def _chapters_by_name(verdicts: Sequence[tuple[str, Verdict]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for chapter, verdict in verdicts:
        found.setdefault(verdict.name, set()).add(chapter)
    return found


def _gauge(verdict: Verdict) -> Gauge | None:
    marks = [verdict.low, verdict.high, verdict.value, verdict.null, verdict.threshold]
    known = [mark for mark in marks if mark is not None]
    if len(known) == 3 or not all(map(math.isfinite, known)) or max(known) == min(known):  # nothing to compare with
        return None
    start, span = min(known), max(known) - min(known)

    def place(mark: float) -> float:
        return round(8 + 84 * (mark - start) / span, 2)

    threshold = None if verdict.threshold is None else place(verdict.threshold)
    good = None
    if threshold is not None:
        good = (threshold, 100.0) if verdict.direction == "higher" else (0.0, threshold)
    null = None if verdict.null is None else place(verdict.null)
    return Gauge(place(verdict.low), place(verdict.high), place(verdict.value), null, threshold, good)
