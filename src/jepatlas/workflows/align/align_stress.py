"""Stress an alignment: few pairs, mismatched pairs, distribution shift, and narrower targets, as a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jepatlas.alignment import PairedLatents
from jepatlas.alignment.stress import (
    MEASURES,
    Protocol,
    Score,
    StressCurve,
    capacity,
    distribution_shift,
    pair_budget,
    pair_noise,
)
from jepatlas.alignment.stress.pair_stress import BUDGETS
from jepatlas.core.figures import Table
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator

__all__ = ["halvings", "score_cells", "stress"]

FEW = (10, 20)
"""Further budgets for data with few pairs."""
TABLES = {
    "the map": ("r2", "nos_10_common", "condition"),
    "distrusted pairs": ("distrusted", "recall", "precision"),
    "the probe": ("source", "migrated"),
}
"""Measures by table; one table of all measures would be too wide."""


def stress(pairs: PairedLatents, groups: np.ndarray | None, *, seed: int, protocol: Protocol | None = None) -> Record:
    """Four stress curves with plain and robust fits; with labels also the accuracy of a migrated probe."""
    protocol = protocol or Protocol()
    given: dict[str, Any] = {"labels": pairs.labels, "groups": groups, "protocol": protocol}
    a, b, rng = pairs.a.h, pairs.b.h, numpy_generator(seed, "stress")
    curves = [
        pair_budget(a, b, rng, budgets=FEW + BUDGETS, **given),
        pair_noise(a, b, rng, **given),
        distribution_shift(a, b, rng, **given),
    ]
    widths = halvings(b.shape[1])
    if len(widths) > 1:
        curves.append(capacity(a, b, rng, widths=widths, **given))
    figures = [curve.figure(measure) for curve in curves for measure in ("r2", "migrated") if measure in curve.measures]
    return Record(
        title=f"Stress curves of the map {pairs.a.name} → {pairs.b.name}",
        summary=f"Held-out scores over {protocol.seeds} seeds for each fitting method; dashed lines are shuffled "
        "pairs. Bands are 95% intervals over seeds. – marks undefined values: NOS@10 of fewer than 11 held-out rows, "
        "or a probe that the map does not carry. κ = inf means that the map loses directions.",
        provenance=provenance(seed) | {"seeds": protocol.seeds} | pairs.provenance,
        figures=tuple(figures),
        tables=tuple(table for curve in curves for table in _tables(curve)),
    )


def _tables(curve: StressCurve) -> list[Table]:
    tables: list[Table] = []
    for title, names in TABLES.items():
        defined = [name for name in names if name in curve.measures]
        if defined:
            tables.append(_table(curve, title, defined))
    return tables


def _table(curve: StressCurve, title: str, names: Sequence[str]) -> Table:
    """One row per point and fit; each score with its interval in one cell and its chance level in the next."""
    columns = [*curve.point_columns, "pairs", "fit"]
    for name in names:
        arrow = "↑" if MEASURES[name].direction == "higher" else "↓"
        columns += [f"{MEASURES[name].title} {arrow}", MEASURES[name].chance]
    rows: list[list[str]] = []
    for point in curve.points:
        for fit, scores in point.scores.items():
            if any(name in scores for name in names):
                cells = [cell for name in names for cell in score_cells(scores.get(name), curve.seeds)]
                rows.append([*curve.point_cells(point), str(point.pairs), fit, *cells])
    return Table(f"{curve.title}: {title}", columns, rows)


def score_cells(score: Score | None, seeds: int) -> tuple[str, str]:
    """Value with interval, and chance level; dashes for undefined scores."""
    if score is None or not score.estimate.n:
        return "–", "–"
    one = score.estimate
    part = f" ({one.n} of {seeds} seeds)" if one.n < seeds else ""
    interval = f" [{one.low:.3g}, {one.high:.3g}]" if np.isfinite(one.value) else ""  # κ = ∞ has no interval
    return f"{one.value:.3g}{interval}{part}", f"{score.null:.3g}"


def halvings(width: int) -> list[int]:
    """The width, its half, and so on: at most five, smallest first.

    >>> halvings(96)
    [6, 12, 24, 48, 96]
    """
    return sorted({max(1, width >> shift) for shift in range(5)})
