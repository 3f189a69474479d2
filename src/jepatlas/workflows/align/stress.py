"""What an alignment withstands, as a record: few pairs, mismatched pairs, shifts, and narrower models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.alignment.paired import PairedLatents
from jepatlas.alignment.stress import Protocol, StressCurve, capacity, distribution_shift, pair_budget, pair_noise
from jepatlas.alignment.stress.pair_stress import BUDGETS
from jepatlas.alignment.stress.stress_curve import MEASURES, Score
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator

__all__ = ["stress"]

FEW = (10, 20)
"""Budgets for those who have few pairs; more than there are is left out."""
TABLES = {
    "the map": ("r2", "nos_10_common", "condition"),
    "distrusted pairs": ("distrusted", "recall", "precision"),
    "the probe": ("source", "migrated"),
}
"""Measures that stand in one table: all of them together would be too wide to read."""


def stress(matched: PairedLatents, groups: np.ndarray | None, *, seed: int, protocol: Protocol | None = None) -> Record:
    """Four curves with and without the robust fit; where there are labels, with what a migrated probe keeps."""
    protocol = protocol or Protocol()
    given: dict[str, Any] = {"labels": matched.labels, "groups": groups, "protocol": protocol}
    a, b, rng = matched.a.h, matched.b.h, numpy_generator(seed, "stress")
    curves = [
        pair_budget(a, b, rng, budgets=FEW + BUDGETS, **given),
        pair_noise(a, b, rng, **given),
        distribution_shift(a, b, rng, **given),
    ]
    if (widths := _halvings(b.shape[1]))[1:]:
        curves.append(capacity(a, b, rng, widths=widths, **given))
    figures = [curve.figure(measure) for curve in curves for measure in _shown(curve)]
    return Record(
        title=f"What the map {matched.a.name} → {matched.b.name} withstands",
        summary=f"Held-out scores over {protocol.seeds} seeds, maps fitted by the methods named; broken lines are what "
        "shuffled pairs give. Bands are 95% intervals over seeds. – stands for what is not defined: NOS@10 of fewer "
        "than 11 held-out rows, a probe that the map does not carry; κ = inf is that of a map that loses directions.",
        provenance=provenance(seed) | {"seeds": protocol.seeds} | matched.provenance,
        figures=tuple(figures),
        tables=tuple(table for curve in curves for table in _tables(curve)),
    )


def _tables(curve: StressCurve) -> list[dict[str, Any]]:
    """One row for each point and fit; a score with its interval in one cell, what chance gives in the next."""
    chosen = {title: [name for name in names if name in curve.measures] for title, names in TABLES.items()}
    return [_table(curve, title, names) for title, names in chosen.items() if names]


def _table(curve: StressCurve, title: str, names: Sequence[str]) -> dict[str, Any]:
    heads = [head for name in names for head in (f"{MEASURES[name].title} {_arrow(name)}", MEASURES[name].chance)]
    rows = [
        [point.label, *([f"{point.x:.3g}"] if curve.x_title else []), str(point.pairs), fit]
        + [cell for name in names for cell in _cells(scores.get(name), curve.seeds)]
        for point in curve.points
        for fit, scores in point.scores.items()
        if any(name in scores for name in names)
    ]
    columns = [curve.label_title, *([curve.x_title] if curve.x_title else []), "pairs", "fit", *heads]
    return {"title": f"{curve.title}: {title}", "columns": columns, "rows": rows}


def _arrow(name: str) -> str:
    return "↑" if MEASURES[name].direction == "higher" else "↓"


def _cells(score: Score | None, seeds: int) -> tuple[str, str]:
    if score is None or not score.estimate.n:
        return "–", "–"
    one = score.estimate
    part = f" ({one.n} of {seeds} seeds)" if one.n < seeds else ""
    if not np.isfinite(one.value):  # a map that loses a direction, in some seed or in all, has κ = ∞ and no interval
        return f"{one.value:.3g}{part}", f"{score.null:.3g}"
    return f"{one.value:.3g} [{one.low:.3g}, {one.high:.3g}]{part}", f"{score.null:.3g}"


def _halvings(width: int) -> list[int]:
    """The width, its half, and so on: at most five, narrowest first."""
    return sorted({max(1, width >> shift) for shift in range(5)})


def _shown(curve: StressCurve) -> list[str]:
    """R², and where there are labels the accuracy that is left after migration."""
    return [measure for measure in ("r2", "migrated") if measure in curve.measures]
