"""What an alignment withstands, as a record: few pairs, mismatched pairs, shifts, and narrower models."""

from __future__ import annotations

from typing import Any

import numpy as np

from jepatlas.align.stress import Protocol, StressCurve, capacity, distribution_shift, pair_budget, pair_noise
from jepatlas.align.stress.pairs import BUDGETS
from jepatlas.alignments.latents import Matched
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Record
from jepatlas.base.seeding import numpy_generator

__all__ = ["stress"]

FEW = (10, 20)
"""Budgets for those who have few pairs; more than there are is left out."""


def stress(matched: Matched, groups: np.ndarray | None, *, seed: int, protocol: Protocol | None = None) -> Record:
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
        "shuffled pairs give. Bands are 95% intervals over seeds.",
        provenance=provenance(seed) | {"seeds": protocol.seeds},
        figures=tuple(figures),
        tables=tuple(curve.table() for curve in curves),
    )


def _halvings(width: int) -> list[int]:
    """The width, its half, and so on: at most five, narrowest first."""
    return sorted({max(1, width >> shift) for shift in range(5)})


def _shown(curve: StressCurve) -> list[str]:
    """R², and where there are labels the accuracy that is left after migration."""
    return [measure for measure in ("r2", "migrated") if measure in curve.measures]
