"""Metrics of held-out pairs under one fitted map: of all pairs, of parts of them, and of permuted pairs.

The rows of both sides are mapped once. Metrics of distances, neighbours and Gram matrices use one `RowGeometry` for
each side and its coordinates; other metrics are computed from the rows each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from jepatlas.alignment import METRICS
from jepatlas.alignment.similarity.distance_structure import dsc
from jepatlas.alignment.similarity.kernel_alignment import cka, cka_debiased
from jepatlas.alignment.similarity.nearest_neighbours import nos
from jepatlas.alignment.similarity.row_geometry import (
    LARGEST,
    GeometryMetric,
    Part,
    RowGeometry,
    permuted_cka,
    permuted_dsc,
    permuted_nos,
)
from jepatlas.alignment.similarity.similarity_metrics import Metric
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.stats import explained_share

__all__ = ["HeldOutMetrics"]

ERRORS = ("r2", "mse_sum", "mse_per_dim")

Sides = dict[str, tuple[RowGeometry, RowGeometry]]
"""Both sides by coordinates."""


class HeldOutMetrics:
    """`names` of METRICS for rows `a` (m, d_a) and the rows `scored` of `b` (n, d_b), with a map a → b."""

    def __init__(
        self,
        a: np.ndarray,
        b: np.ndarray,
        scored: np.ndarray,
        transition: LinearMap,
        names: Sequence[str],
        *,
        limit: float | None = None,
    ) -> None:
        self.b = b
        self.transition = transition
        self.names = list(names)
        self.scale = transition.y_scale
        used = {METRICS[name].coordinates for name in names}
        self.inverse = transition.invert(limit) if "common" in used else None
        mapped = transition.apply(a) if used & {"target", "units"} else a
        own = RowGeometry(a)
        self.first = {
            "own": own,
            "common": own,
            "target": RowGeometry(mapped),
            "units": RowGeometry(mapped / self.scale),
        }
        self.used = used
        self.sides = self._beside(b[scored])
        self.errors = {name: _RowErrors(*self._rows(METRICS[name])) for name in names if name in ERRORS}

    def of(self, rows: np.ndarray) -> dict[str, float]:
        """Metrics of some of the pairs."""
        if len(rows) == len(self.first["own"]):
            return self._values(self.sides, None, self.names)
        part = Part(rows, len(self.first["own"]))
        geometries = {id(side): side.part(part) for pair in self.sides.values() for side in pair}
        parts = {kind: (geometries[id(a)], geometries[id(b)]) for kind, (a, b) in self.sides.items()}
        others = [name for name in self.names if name not in self.errors]
        values = {name: errors.of(name, rows) for name, errors in self.errors.items()}
        values |= self._values(parts, None, others)
        return {name: values[name] for name in self.names}

    def permuted(self, order: np.ndarray, names: Sequence[str]) -> dict[str, float]:
        """Metrics after the partner of pair i is replaced by that of pair order[i]."""
        if (np.bincount(order, minlength=len(order)) == 1).all():
            return self._values(self.sides, order, names)
        moved = {id(b): RowGeometry(b.rows[order]) for _, b in self.sides.values()}  # groups of unequal sizes
        return self._values({kind: (a, moved[id(b)]) for kind, (a, b) in self.sides.items()}, None, names)

    def replaced(self, rows: np.ndarray, names: Sequence[str]) -> dict[str, float]:
        """Metrics with the given rows of b as partners."""
        return self._values(self._beside(self.b[rows]), None, names)

    def _rows(self, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.sides[metric.coordinates]
        return a.rows, b.rows

    def _beside(self, b: np.ndarray) -> Sides:
        """The first side with rows of b, in the coordinates that are used."""
        own = RowGeometry(b)
        second = {"own": own, "target": own}
        if self.inverse is not None:
            second["common"] = RowGeometry(self.inverse.apply(b))
        if "units" in self.used:
            second["units"] = RowGeometry(b / self.scale)
        return {kind: (self.first[kind], second[kind]) for kind in self.used}

    def _values(self, sides: Sides, order: np.ndarray | None, names: Sequence[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in names:
            metric = METRICS[name]
            a, b = sides[metric.coordinates]
            fast = _geometric(metric)
            if fast is not None and len(a) <= LARGEST:
                found[name] = fast(a, b, order)
            elif metric.k is not None and metric.k >= len(a):
                found[name] = float("nan")
            else:
                found[name] = metric(a.rows, b.rows if order is None else b.rows[order])
        return found


class _RowErrors:
    """Squared errors of rows, and what the variance of a part needs."""

    def __init__(self, predicted: np.ndarray, truth: np.ndarray) -> None:
        self.errors = np.square(truth - predicted).sum(1)
        first = truth[0].astype(np.float64)
        shifted = truth - first  # a constant truth becomes exactly zero
        self.shifted = shifted - shifted.mean(0)
        self.squares = np.square(self.shifted).sum(1)

    def of(self, name: str, rows: np.ndarray) -> float:
        error = float(self.errors[rows].sum())
        if name == "r2":
            mean = self.shifted[rows].mean(0)
            return explained_share(error, float(self.squares[rows].sum() - len(rows) * mean @ mean))
        return error / len(rows) / (self.shifted.shape[1] if name == "mse_per_dim" else 1)


def _geometric(metric: Metric) -> GeometryMetric | None:
    """The metric as a function of geometries, if there is one."""
    if metric.function is nos and metric.k is not None:
        return partial(permuted_nos, k=metric.k)
    if metric.function is cka:
        return partial(permuted_cka, debiased=False)
    return {cka_debiased: permuted_cka, dsc: permuted_dsc}.get(metric.function)
