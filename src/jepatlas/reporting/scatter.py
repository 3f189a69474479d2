"""Scatter panels: the same samples in different coordinates, with the same colours.

Both axes of a panel have one scale, so that rotations and stretches look like what they are. Panels with the same
`range` have the same limits. A sample's colour shows one or two numbers, or, with a symbol, a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.arrays import check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Scatter, ScatterPanel
from jepatlas.reporting.colours import hues, ramp, wheel
from jepatlas.reporting.drawing import (
    Arrays,
    ColourKey,
    Drawing,
    KeyName,
    Panel,
    equal_scale_figure,
    join,
    missing,
    named_array,
)

__all__ = ["POINTS", "Marks", "axis_labels", "axis_limit", "draw_scatter", "marks_of", "points_of"]

POINTS = 2000  # samples drawn at most
LARGE_POINTS = 500  # samples up to which points are drawn larger
DISTINCT_NAMES = 12  # names with a colour of their own
SYMBOLS = {"circle": "●", "square": "■", "diamond": "◆"}


@dataclass(frozen=True)
class Marks:
    """Colours and symbols of samples; without colours, the page's theme sets one for all."""

    colours: list[str] | None = None
    symbols: list[str] | str = "circle"
    keys: tuple[ColourKey, ...] = ()

    def rows(self, index: np.ndarray) -> Marks:
        """The marks of some samples."""
        colours = None if self.colours is None else [self.colours[i] for i in index]
        symbols = self.symbols if isinstance(self.symbols, str) else [self.symbols[i] for i in index]
        return replace(self, colours=colours, symbols=symbols)


def draw_scatter(spec: Scatter, arrays: Arrays, seed: int) -> Drawing:
    """One point per sample; of many samples a random choice is drawn, the same in all panels."""
    panels = []
    keys: list[ColourKey] = []
    notes: list[str | None] = [spec.note]
    for part in spec.panels:
        points = points_of(part, arrays)
        index = _chosen(len(points), seed)
        marks = marks_of(part, arrays, points)
        labels = axis_labels(part)
        alt = f"Scatter plot of {len(index):,} samples, {labels[0]} across and {labels[1]} up."
        plot = _plot(points[index], index, marks.rows(index), labels, axis_limit(spec, part, arrays))
        panels.append(Panel(part.x if part.title is None else str(part.title), alt, plot))
        keys.extend(marks.keys)
        if len(index) < len(points):
            notes.append(f"{len(index):,} of {len(points):,} samples are drawn, chosen with seed {seed}.")
        notes.append(missing(part.x, points))
    return Drawing("scatter", spec.title, join(notes), tuple(panels), keys=tuple(dict.fromkeys(keys)))


def points_of(part: ScatterPanel, arrays: Arrays) -> np.ndarray:
    """The two columns that a panel shows, (n, 2)."""
    points = _pick(arrays, part.x, _columns(part))
    if points.shape[1] != 2:
        raise InputError(f"a panel needs two 'columns', but {part.columns} is given.")
    return points


def axis_labels(part: ScatterPanel) -> list[str]:
    """The names of both coordinates, for example h[0] and h[1]."""
    return _column_labels(part.x if part.label is None else part.label, _columns(part))


def axis_limit(spec: Scatter, part: ScatterPanel, arrays: Arrays) -> float | None:
    """The largest absolute value on the axes of all panels with this panel's `range`; None for a panel of its own."""
    if part.range is None:
        return None
    panels = [points_of(other, arrays) for other in spec.panels if other.range == part.range]
    finite = [np.abs(points[np.isfinite(points)]) for points in panels]
    sizes = [values.max() for values in finite if values.size]
    return 1.05 * max(sizes) if len(panels) > 1 and sizes else None


def _columns(part: ScatterPanel) -> Sequence[int]:
    return [0, 1] if part.columns is None else part.columns


def _pick(arrays: Arrays, name: str, columns: Sequence[int]) -> np.ndarray:
    """Some columns of a numeric array."""
    array = named_array(name, arrays)
    array = array.reshape(len(array), -1)
    if array.dtype.kind not in "fiub":
        raise InputError(f"array '{name}' must hold numbers, but its type is {array.dtype}.")
    if not all(isinstance(column, int) and 0 <= column < array.shape[1] for column in columns):
        raise InputError(f"array '{name}' has {array.shape[1]} columns, so there are no columns {columns}.")
    return array[:, columns].astype(float)


def _column_labels(name: str, columns: Sequence[int]) -> list[str]:
    return [f"{name}[{column}]" for column in columns]


def _chosen(rows: int, seed: int) -> np.ndarray:
    """Indices of the samples to draw: all, or a random 2000 of them, in order."""
    if rows <= POINTS:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, POINTS, replace=False))


def marks_of(part: ScatterPanel, arrays: Arrays, points: np.ndarray) -> Marks:
    """The marks of a panel's samples by its `color`: an array of names, or of one or two columns of numbers."""
    name = part.color
    if name is None:
        return Marks()
    array = named_array(name, arrays)
    one_column = array.ndim == 1
    label = name if part.color_label is None else part.color_label
    if one_column and array.dtype.kind == "U":
        check_rows({part.x: points, name: array})
        return _marks_by_name(array, label)
    columns = part.color_columns
    if columns is None:
        columns = [0] if one_column else [0, 1]
    values = _pick(arrays, name, columns)
    check_rows({part.x: points, name: values})
    labels = [label] if one_column else _column_labels(label, columns)
    if values.shape[1] == 2:
        text = f"Colour: direction and distance of ({labels[0]}, {labels[1]}) from the mean."
        return Marks(wheel(values), keys=(ColourKey("wheel", text),))
    if values.shape[1] == 1:
        text = f"Colour: {labels[0]}, from {np.nanmin(values):.4g} to {np.nanmax(values):.4g}."
        return Marks(ramp(values[:, 0]), keys=(ColourKey("ramp", text),))
    raise InputError(f"'color_columns' must name one or two columns, but {columns} is given.")


def _marks_by_name(names: np.ndarray, label: str) -> Marks:
    """A colour and a symbol for each name, because neighbouring hues are hard to distinguish; a ramp for many names."""
    distinct, number = np.unique(names, return_inverse=True)
    if len(distinct) > DISTINCT_NAMES:
        span = f"from {distinct[0]} to {distinct[-1]}"
        text = f"Colour: {label}, {len(distinct)} of them in alphabetical order, {span}."
        return Marks(ramp(number.astype(float)), keys=(ColourKey("ramp", text),))
    colours = hues(len(distinct))
    symbols = [list(SYMBOLS)[i % len(SYMBOLS)] for i in range(len(distinct))]
    entries = tuple(KeyName(str(one), colours[i], SYMBOLS[symbols[i]]) for i, one in enumerate(distinct))
    key = ColourKey("names", f"{label[0].upper()}{label[1:]}:", entries)
    return Marks([colours[i] for i in number], [symbols[i] for i in number], (key,))


def _plot(points: np.ndarray, index: np.ndarray, marks: Marks, labels: list[str], limit: float | None) -> go.Figure:
    finite = np.where(np.isfinite(points), points, np.nan).astype(np.float32)
    marker: dict[str, Any] = {"size": 5 if len(points) > LARGE_POINTS else 7, "opacity": 0.85, "line": {"width": 0}}
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
    limits = {} if limit is None else {"range": [-limit, limit]}
    return equal_scale_figure([trace], labels, **limits)
