"""Results of a sweep as a record (a table, and curves over a varied option) and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record, Verdict
from jepatlas.core.verdict_names import plain_name
from jepatlas.training import SweepResult

__all__ = ["sweep_csv", "sweep_record"]

SEED = "seed"
WIDE = 20  # positive values that span such a factor are drawn on a logarithmic axis

Settings = Mapping[str, str]
"""The varied options of a run, and their values."""


def sweep_record(results: Sequence[SweepResult], settings: Sequence[Settings], metric: str, seed: int) -> Record:
    """All runs in one table, with the `metric` of each, and its curve over every varied option that is a number.

    Runs that differ only in their seed are one point: their mean, with the smallest and the largest value.
    """
    counts = {status: sum(r.status == status for r in results) for status in dict.fromkeys(r.status for r in results)}
    summary = f"{len(results)} runs: {', '.join(f'{count} {status}' for status, count in counts.items())}."
    judged = [_checks(result) for result in results]
    if any(judged):
        passed = sum(checks == {"passed"} for checks in judged)
        summary += f" Certificates that passed all checks: {passed} of {sum(map(bool, judged))}."
    options = list(settings[0]) if settings else []
    rows = []
    for result, chosen in zip(results, settings, strict=True):
        verdict = _verdict(result, metric)
        numbers = [None, None, None] if verdict is None else [float(verdict[key]) for key in ("value", "low", "high")]
        rows.append([result.name, result.status, *(chosen[name] for name in options), *numbers])
    columns = ["run", "status", *options, plain_name(metric), "low", "high"]
    figures = [_curves(results, settings, option, metric) for option in options if option != SEED]
    return Record(
        title="Sweep",
        summary=summary,
        provenance=provenance(seed) | {"runs": len(results)},
        figures=tuple(figure for figure in figures if figure is not None),
        tables=(Table("Runs", columns, rows),),
    )


def sweep_csv(results: Sequence[SweepResult], settings: Sequence[Settings]) -> str:
    """One row for each run: its options, and value, low, high and passed of each of its verdicts."""
    options = list(settings[0]) if settings else []
    names = list(dict.fromkeys(verdict["name"] for r in results for verdict in r.record.get("verdicts", [])))
    parts = ("value", "low", "high", "passed")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "status", *options, "error", *(f"{name}.{part}" for name in names for part in parts)])
    for result, chosen in zip(results, settings, strict=True):
        found = [_verdict(result, name) or {} for name in names]
        cells = [verdict.get(part, "") for verdict in found for part in parts]
        writer.writerow([result.name, result.status, *chosen.values(), result.record.get("error", ""), *cells])
    return text.getvalue()


def _checks(result: SweepResult) -> set[str]:
    """The outcomes of the checks of a run's certificate; empty if it has none."""
    return {Verdict.from_json(one).status for one in result.record.get("verdicts", [])} - {"informational"}


def _verdict(result: SweepResult, name: str) -> dict[str, Any] | None:
    return next((one for one in result.record.get("verdicts", []) if one["name"] == name), None)


def _curves(results: Sequence[SweepResult], settings: Sequence[Settings], option: str, metric: str) -> Curves | None:
    """One curve for each combination of the other options; None unless the option has two or more numbers."""
    lines: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for result, chosen in zip(results, settings, strict=True):
        verdict = _verdict(result, metric)
        x = _number(chosen[option])
        if x is None:
            return None
        if verdict is None:
            continue
        others = [f"{name}={value}" for name, value in chosen.items() if name not in (option, SEED)]
        lines.setdefault(", ".join(others) or plain_name(metric), {}).setdefault(x, []).append(verdict)
    places = {x for line in lines.values() for x in line}
    if len(places) < 2:
        return None
    return Curves(
        title=f"{plain_name(metric)} over {option}",
        note="Bands are 95% intervals of single runs, or from the smallest to the largest value of several seeds.",
        series=[_curve(name, line) for name, line in lines.items()],
        x_label=option,
        y_label=plain_name(metric),
        log_x=min(places) > 0 and max(places) >= WIDE * min(places),
    )


def _curve(name: str, line: Mapping[float, Sequence[Mapping[str, Any]]]) -> Curve:
    xs = sorted(line)
    y, low, high = [], [], []
    for x in xs:
        runs = line[x]
        values = [float(run["value"]) for run in runs]
        y.append(float(np.mean(values)))
        low.append(float(runs[0]["low"]) if len(runs) == 1 else min(values))
        high.append(float(runs[0]["high"]) if len(runs) == 1 else max(values))
    return Curve(name, xs, y, low, high)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
