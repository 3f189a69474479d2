"""Landscapes: a number at every place of a plane, such as an energy to a goal, with walls, paths and marks on top.

    {"kind": "landscape", "title", "note", "label", "panels": [{"title", "values": array (rows, columns),
     "x": [first, last], "y": [first, last], "paths": [{"name", "points": array (k, 2)}], "marks": [{"name", "at"}]}]}

Row 0 lies at the first `y`. A place that is not finite is grey: it cannot be reached. All panels have one scale
of colours, so that there and back can be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec, join, plain, to_scale

__all__ = ["draw_landscape", "landscape_axes", "landscape_values"]


def draw_landscape(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    del seed
    fields = [landscape_values(part, arrays) for part in spec["panels"]]
    top = max((float(field[np.isfinite(field)].max()) for field in fields if np.isfinite(field).any()), default=1.0)
    names = list(dict.fromkeys(str(path["name"]) for part in spec["panels"] for path in part.get("paths", [])))
    panels = []
    for part, field in zip(spec["panels"], fields, strict=True):
        traces: list[Any] = [_unreachable(part, field)] if not np.isfinite(field).all() else []
        scale = len(panels) + 1 == len(fields)  # one for all, beside the last panel
        traces.append(_field(part, field, top or 1.0, str(spec.get("label", "")) if scale else None))
        traces += [_path(path, arrays, 1 + names.index(str(path["name"]))) for path in part.get("paths", [])]
        traces += [_mark(mark) for mark in part.get("marks", [])]
        plot = to_scale(traces, showgrid=False, zeroline=False)
        panels.append(Panel(str(part.get("title", "")), _alt(part, field), plot))
    blank = "Grey places cannot be reached." if any((~np.isfinite(field)).any() for field in fields) else ""
    return Drawing("landscape", str(spec.get("title", "")), join([spec.get("note"), blank]), tuple(panels))


def landscape_values(part: Spec, arrays: Arrays) -> np.ndarray:
    """The numbers of a panel, as rows and columns of places."""
    field = _array(part["values"], arrays)
    if field.ndim != 2 or not field.size:
        raise InputError(f"array '{part['values']}' must have rows and columns, but its shape is {field.shape}.")
    return field


def landscape_axes(part: Spec, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where its columns and rows lie."""
    ends = [part.get(key, [0, count - 1]) for key, count in (("x", field.shape[1]), ("y", field.shape[0]))]
    (left, right), (bottom, top) = ends
    return np.linspace(left, right, field.shape[1]), np.linspace(bottom, top, field.shape[0])


def _array(name: str, arrays: Arrays) -> np.ndarray:
    if name not in arrays:
        raise InputError(f"there is no array '{name}'. {did_you_mean(str(name), arrays)}")
    return np.asarray(arrays[name], float)


def _field(part: Spec, field: np.ndarray, top: float, label: str | None) -> go.Heatmap:
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
        colorbar={"thickness": 10, "outlinewidth": 0, "len": 0.8, "title": {"text": plain(label), "side": "right"}},
    )


def _unreachable(part: Spec, field: np.ndarray) -> go.Heatmap:
    x, y = landscape_axes(part, field)
    hidden = np.where(np.isfinite(field), np.nan, 1.0).astype(np.float32)
    return go.Heatmap(
        z=hidden,
        x=x,
        y=y,
        showscale=False,
        meta={"part": "blank"},
        hovertemplate="%{x:.3g}, %{y:.3g}<br>not reached<extra></extra>",
    )


def _path(path: Spec, arrays: Arrays, number: int) -> go.Scatter:
    points = _array(path["points"], arrays)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError(f"array '{path['points']}' must have two columns, but its shape is {points.shape}.")
    return go.Scatter(
        x=points[:, 0],
        y=points[:, 1],
        name=plain(path["name"]),
        mode="lines",
        meta={"part": "line", "series": number},
        hovertemplate="%{x:.3g}, %{y:.3g}",
    )


def _mark(mark: Spec) -> go.Scatter:
    x, y = mark["at"]
    marker: dict[str, Any] = {"size": 11, "symbol": "x", "line": {"width": 1, "color": "white"}}
    return go.Scatter(
        x=[x],
        y=[y],
        name=plain(mark["name"]),
        mode="markers",
        marker=marker,
        meta={"part": "points", "series": 3},
        hovertemplate="%{x:.3g}, %{y:.3g}",
    )


def _alt(part: Spec, field: np.ndarray) -> str:
    finite = field[np.isfinite(field)]
    span = f"values from {finite.min():.3g} to {finite.max():.3g}" if finite.size else "nowhere finite"
    reached = f"{finite.size / field.size:.0%} of the places can be reached"
    return f"Landscape of {field.shape[0]} by {field.shape[1]} places, {span}; {reached}."
