"""A matrix as colours around zero, for example WᵀW of a map, which is the identity where W is orthogonal.

{"kind": "heatmap", "title", "note", "matrix", "x", "y", "x_label", "y_label"}
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec, axis, figure, join, missing, numbers, plain

__all__ = ["draw_heatmap"]


def draw_heatmap(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    """Small matrices also show their numbers; the first row is on top, as it is written."""
    del arrays, seed
    matrix = numbers(spec["matrix"])
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"'matrix' must have rows and columns, but its shape is {matrix.shape}.")
    rows, columns = matrix.shape
    x = _names(spec, "x", columns)
    y = _names(spec, "y", rows)
    finite = np.where(np.isfinite(matrix), matrix, np.nan)
    reach = float(np.nanmax(np.abs(finite))) if np.isfinite(finite).any() else 1.0
    reach, signed = reach or 1.0, bool((finite < 0).any())
    trace = go.Heatmap(
        z=finite,
        zmin=-reach if signed else 0,
        zmax=reach,
        xgap=1,
        ygap=1,
        customdata=[[f"{row}, {column}" for column in x] for row in y],
        meta={"part": "matrix", "signed": signed},
        texttemplate="%{z:.2f}" if columns <= 8 else None,
        hovertemplate="%{customdata}<br>%{z:.4g}<extra></extra>",
        colorbar={"thickness": 10, "outlinewidth": 0, "len": 0.8},
    )
    plot = figure(
        [trace],
        xaxis=_ticks(x, spec.get("x_label", "")),
        yaxis=_ticks(y, spec.get("y_label", ""), autorange="reversed"),
    )
    alt = f"Heat map of a matrix with {rows} rows and {columns} columns, values up to {reach:.4g} in size."
    note = join([spec.get("note"), missing("matrix", matrix)])
    return Drawing("heatmap", str(spec.get("title", "")), note, (Panel("", alt, plot),))


def _names(spec: Spec, key: str, count: int) -> list[str]:
    names = spec.get(key)
    names = list(range(count)) if names is None else names
    if len(names) != count:
        raise InputError(f"'{key}' has {len(names)} names for {count} rows or columns.")
    return [plain(name) for name in names]


def _ticks(names: list[str], label: object, **settings: Any) -> dict[str, Any]:
    shown = range(0, len(names), max(1, -(-len(names) // 16)))
    ticks = {"tickvals": list(shown), "ticktext": [names[i] for i in shown]}
    return axis(label, width=40, showgrid=False, zeroline=False, ticks="", **ticks, **settings)
