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

from jepatlas.base.arrays import check_rows
from jepatlas.base.errors import InputError, nearest
from jepatlas.report.colours import ramp, wheel
from jepatlas.report.drawing import Arrays, ColourKey, Drawing, Panel, Spec, join, missing, to_scale

__all__ = ["POINTS", "choose", "draw_scatter"]

POINTS = 2000


def draw_scatter(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    """One point per sample; `color` gives the coordinates that its colour stands for."""
    panels, keys, notes = [], [], [spec.get("note")]
    drawn = [_points(part, arrays) for part in spec["panels"]]
    for part, points in zip(spec["panels"], drawn, strict=True):
        index = choose(len(points), seed)
        colours, key = _colours(part, arrays, points)
        labels = _labels(str(part.get("label", part["x"])), part.get("columns", [0, 1]))
        alt = f"Scatter plot of {len(index):,} samples, {labels[0]} across and {labels[1]} up."
        together = [
            other for near, other in zip(spec["panels"], drawn, strict=True) if near is part or _alike(near, part)
        ]
        plot = _plot(points[index], index, colours and [colours[i] for i in index], labels, _reach(together))
        panels.append(Panel(str(part.get("title", part["x"])), alt, plot))
        keys.extend(key)
        if len(index) < len(points):
            notes.append(f"{len(index):,} of {len(points):,} samples are drawn, chosen with seed {seed}.")
        notes.append(missing(part["x"], points))
    return Drawing("scatter", str(spec.get("title", "")), join(notes), tuple(panels), keys=tuple(dict.fromkeys(keys)))


def _points(part: Spec, arrays: Arrays) -> np.ndarray:
    columns = part.get("columns", [0, 1])
    points = _pick(arrays, part["x"], columns)
    if points.shape[1] != 2:
        raise InputError(f"a panel draws two columns, but 'columns' is {columns}.")
    return points


def _alike(one: Spec, other: Spec) -> bool:
    return one.get("range") is not None and one.get("range") == other.get("range")


def _reach(panels: list[np.ndarray]) -> float | None:
    """What every axis of panels with one range must show on both sides of zero; one panel alone chooses for itself."""
    finite = [np.abs(points[np.isfinite(points)]) for points in panels]
    return 1.05 * max(part.max() for part in finite if part.size) if len(panels) > 1 and any(map(len, finite)) else None


def choose(rows: int, seed: int) -> np.ndarray:
    """The samples to draw: all, or a random 2000 of them, in order."""
    if rows <= POINTS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, POINTS, replace=False))


def _pick(arrays: Arrays, name: str, columns: list[int]) -> np.ndarray:
    if name not in arrays:
        raise InputError(f"there is no array '{name}'. {nearest(str(name), arrays)}")
    array = arrays[name].reshape(len(arrays[name]), -1)
    if array.dtype.kind not in "fiub":
        raise InputError(f"array '{name}' does not hold numbers but {array.dtype}.")
    if not all(isinstance(column, int) and 0 <= column < array.shape[1] for column in columns):
        raise InputError(f"array '{name}' has {array.shape[1]} columns, so there are no columns {columns}.")
    return array[:, columns].astype(float)


def _colours(part: Spec, arrays: Arrays, points: np.ndarray) -> tuple[list[str] | None, list[ColourKey]]:
    name = part.get("color")
    if name is None:
        return None, []
    flat = name in arrays and arrays[name].ndim == 1
    columns = part.get("color_columns", [0] if flat else [0, 1])
    truth = _pick(arrays, name, columns)
    check_rows({part["x"]: points, name: truth})
    label = str(part.get("color_label", name))
    labels = [label] if flat else _labels(label, columns)
    if truth.shape[1] == 2:
        text = f"Colour: direction and distance of ({labels[0]}, {labels[1]}) from the mean."
        return wheel(truth), [ColourKey("wheel", text)]
    if truth.shape[1] == 1:
        text = f"Colour: {labels[0]}, from {np.nanmin(truth):.4g} to {np.nanmax(truth):.4g}."
        return ramp(truth[:, 0]), [ColourKey("ramp", text)]
    raise InputError(f"a colour stands for one or two columns, but 'color_columns' is {columns}.")


def _labels(name: str, columns: list[int]) -> list[str]:
    return [f"{name}[{column}]" for column in columns]


def _plot(
    points: np.ndarray, index: np.ndarray, colours: list[str] | None, labels: list[str], reach: float | None
) -> go.Figure:
    finite = np.where(np.isfinite(points), points, np.nan).astype(np.float32)
    marker: dict[str, Any] = {"size": 5 if len(points) > 500 else 7, "opacity": 0.85, "line": {"width": 0}}
    if colours:
        marker["color"] = colours
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
