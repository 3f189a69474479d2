"""Scatter panels: latents beside the truth, the same samples in the same colours.

    {"kind": "scatter", "title", "note", "panels": [{"title", "x": array, "columns": [0, 1], "label", "range",
                                                     "color": array or null, "color_columns": [0, 1], "color_label"}]}

Both axes of a panel have one scale, so that a rotation looks like a rotation and a stretch like a stretch. Panels with
the same `range` (any name) have the same limits, so that they can be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec, join, missing, to_scale
from jepatlas.reporting.marks import Marks, marks_of, named, pick

__all__ = ["POINTS", "choose", "common_reach", "draw_scatter"]

POINTS = 2000


def draw_scatter(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    """One point per sample; `color` gives the coordinates that its colour stands for."""
    panels, keys, notes = [], [], [spec.get("note")]
    for part in spec["panels"]:
        points = _points(part, arrays)
        index = choose(len(points), seed)
        marks = marks_of(part, arrays, points)
        labels = named(str(part.get("label", part["x"])), part.get("columns", [0, 1]))
        alt = f"Scatter plot of {len(index):,} samples, {labels[0]} across and {labels[1]} up."
        plot = _plot(points[index], index, marks.rows(index), labels, common_reach(spec, part, arrays))
        panels.append(Panel(str(part.get("title", part["x"])), alt, plot))
        keys.extend(marks.keys)
        if len(index) < len(points):
            notes.append(f"{len(index):,} of {len(points):,} samples are drawn, chosen with seed {seed}.")
        notes.append(missing(part["x"], points))
    return Drawing("scatter", str(spec.get("title", "")), join(notes), tuple(panels), keys=tuple(dict.fromkeys(keys)))


def _points(part: Spec, arrays: Arrays) -> np.ndarray:
    columns = part.get("columns", [0, 1])
    points = pick(arrays, part["x"], columns)
    if points.shape[1] != 2:
        raise InputError(f"a panel draws two columns, but 'columns' is {columns}.")
    return points


def common_reach(spec: Spec, part: Spec, arrays: Arrays) -> float | None:
    """What every axis of panels with the range of this one shows on both sides of zero; one panel alone chooses for
    itself."""
    panels = [_points(near, arrays) for near in spec["panels"] if near is part or _alike(near, part)]
    finite = [np.abs(points[np.isfinite(points)]) for points in panels]
    return 1.05 * max(part.max() for part in finite if part.size) if len(panels) > 1 and any(map(len, finite)) else None


def _alike(one: Spec, other: Spec) -> bool:
    return one.get("range") is not None and one.get("range") == other.get("range")


def choose(rows: int, seed: int) -> np.ndarray:
    """The samples to draw: all, or a random 2000 of them, in order."""
    if rows <= POINTS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, POINTS, replace=False))


def _plot(points: np.ndarray, index: np.ndarray, marks: Marks, labels: list[str], reach: float | None) -> go.Figure:
    finite = np.where(np.isfinite(points), points, np.nan).astype(np.float32)
    marker: dict[str, Any] = {"size": 5 if len(points) > 500 else 7, "opacity": 0.85, "line": {"width": 0}}
    if marks.colours:
        marker |= {"color": marks.colours, "symbol": marks.symbols}
    trace = go.Scatter(
        x=finite[:, 0],
        y=finite[:, 1],
        customdata=index,
        mode="markers",
        marker=marker,
        meta={"part": "points", "series": 0},
        hovertemplate="sample %{customdata}<br>%{x:.3f}, %{y:.3f}<extra></extra>",
    )
    limits = {} if reach is None else {"range": [-reach, reach]}
    return to_scale([trace], labels, **limits)
