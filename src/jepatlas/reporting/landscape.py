"""Landscapes: scalar fields over a plane, such as an energy to a goal, with paths and marks.

Row 0 lies at the first `y`. Values that are not finite are drawn grey: these places cannot be reached. All panels share
one colour scale, so that energies to and from a goal can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Landscape, LandscapeMark, LandscapePanel, LandscapePath
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, colour_bar, equal_scale_figure, join, named_array, plain

__all__ = ["colour_scale_top", "draw_landscape", "landscape_axes", "landscape_path", "landscape_values"]


def draw_landscape(spec: Landscape, arrays: Arrays, seed: int) -> Drawing:
    del seed
    fields = [landscape_values(part, arrays) for part in spec.panels]
    top = colour_scale_top(fields)
    names = list(dict.fromkeys(str(path.name) for part in spec.panels for path in part.paths or ()))
    panels = []
    for number, (part, field) in enumerate(zip(spec.panels, fields, strict=True)):
        is_last = number + 1 == len(fields)  # the colour scale stands beside the last panel
        traces: list[Any] = []
        if not np.isfinite(field).all():
            traces.append(_unreachable(part, field))
        traces.append(_field(part, field, top, (spec.label or "") if is_last else None))
        traces += [_path(path, arrays, 1 + names.index(str(path.name))) for path in part.paths or ()]
        traces += [_mark(mark) for mark in part.marks or ()]
        plot = equal_scale_figure(traces, showgrid=False, zeroline=False)
        panels.append(Panel(str(part.title), _alt(field), plot))
    blank = "Grey places cannot be reached." if any(not np.isfinite(field).all() for field in fields) else ""
    return Drawing("landscape", spec.title, join([spec.note, blank]), tuple(panels))


def landscape_values(part: LandscapePanel, arrays: Arrays) -> np.ndarray:
    """The field of a panel, (rows, columns)."""
    field = named_array(part.values, arrays).astype(float)
    if field.ndim != 2 or not field.size:
        raise InputError(f"array '{part.values}' must have rows and columns, but its shape is {field.shape}.")
    return field


def landscape_axes(part: LandscapePanel, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of the field's columns and rows."""
    rows, columns = field.shape
    left, right = (0, columns - 1) if part.x is None else part.x
    bottom, top = (0, rows - 1) if part.y is None else part.y
    return np.linspace(left, right, columns), np.linspace(bottom, top, rows)


def landscape_path(path: LandscapePath, arrays: Arrays) -> np.ndarray:
    """The points of a path, (k, 2)."""
    points = named_array(path.points, arrays).astype(float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError(f"array '{path.points}' must have two columns, but its shape is {points.shape}.")
    return points


def colour_scale_top(fields: Sequence[np.ndarray]) -> float:
    """The largest finite value of all fields; 1 if there is no positive one."""
    largest = [float(field[np.isfinite(field)].max()) for field in fields if np.isfinite(field).any()]
    return max(largest, default=1.0) or 1.0


def _field(part: LandscapePanel, field: np.ndarray, top: float, label: str | None) -> go.Heatmap:
    x, y = landscape_axes(part, field)
    return go.Heatmap(
        z=np.where(np.isfinite(field), field, np.nan).astype(np.float32),
        x=x,
        y=y,
        zmin=0,
        zmax=top,
        meta={"part": "matrix", "signed": False},
        hovertemplate="%{x:.3g}, %{y:.3g}<br>%{z:.4g}<extra></extra>",
        showscale=label is not None,
        colorbar=colour_bar(label or ""),
    )


def _unreachable(part: LandscapePanel, field: np.ndarray) -> go.Heatmap:
    x, y = landscape_axes(part, field)
    return go.Heatmap(
        z=np.where(np.isfinite(field), np.nan, 1.0).astype(np.float32),
        x=x,
        y=y,
        showscale=False,
        meta={"part": "blank"},
        hovertemplate="%{x:.3g}, %{y:.3g}<br>unreachable<extra></extra>",
    )


def _path(path: LandscapePath, arrays: Arrays, number: int) -> go.Scatter:
    points = landscape_path(path, arrays)
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        name=plain(path.name),
        mode="lines",
        meta={"part": "line", "series": number},
        hovertemplate="%{x:.3g}, %{y:.3g}",
    )


def _mark(mark: LandscapeMark) -> go.Scatter:
    x, y = mark.at
    marker: dict[str, Any] = {"size": 11, "symbol": "x", "line": {"width": 1, "color": "white"}}
    return go.Scatter(
        x=[x],
        y=[y],
        name=plain(mark.name),
        mode="markers",
        marker=marker,
        meta={"part": "points", "series": 3},
        hovertemplate="%{x:.3g}, %{y:.3g}",
    )


def _alt(field: np.ndarray) -> str:
    finite = field[np.isfinite(field)]
    span = f"values from {finite.min():.3g} to {finite.max():.3g}" if finite.size else "nowhere finite"
    reachable = f"{finite.size / field.size:.0%} of the places can be reached"
    return f"Landscape of {field.shape[0]} by {field.shape[1]} places, {span}; {reachable}."
