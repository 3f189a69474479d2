"""Plots of the page whose data is in the figure spec itself: bars, curves and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.arrays import check_rows
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Bars, BarSeries, Curve, CurvePanel, Curves, Heatmap
from jepatlas.reporting.drawing import (
    Arrays,
    Drawing,
    Panel,
    axis,
    colour_bar,
    join,
    missing,
    numbers,
    plain,
    plotly_figure,
    series_data,
)

__all__ = [
    "LABELLED_PLACES",
    "MARKED_POINTS",
    "PUBLISHED",
    "bar_data",
    "draw_bars",
    "draw_curves",
    "draw_heatmap",
    "matrix_of",
]

PUBLISHED = "published"
BARS_IN_HALF_PAGE = 12
LABEL_BESIDE_PANELS = 18  # characters per line of a y label, if several panels stand side by side
LABEL_BESIDE_PLOT = 40  # the same for a single plot
LABELLED_PLACES = 8  # a logarithmic axis with at most so many distinct x values is labelled at each of them
MARKED_POINTS = 12  # lines with at most so many points also have markers
CELLS_WITH_NUMBERS = 8  # columns up to which a heat map also shows its numbers
TICKS = 16


def draw_bars(spec: Bars, arrays: Arrays, seed: int) -> Drawing:
    """Grouped bars with intervals as whiskers; published values are marks across the groups."""
    del arrays, seed
    names = [plain(name) for name in spec.names]
    legend = [str(series.name) for series in spec.series]
    traces: list[Any] = []
    notes: list[str | None] = [spec.note]
    ranges = []
    for number, series in enumerate(spec.series):
        data = bar_data(spec, series)
        traces.append(_bar_trace(names, series, number, data))
        notes.append(missing(series.name, data["y"]))
        ranges.append(f"{series.name} {_range(data['y'])}")
    if spec.published is not None:
        traces.append(_published_trace(names, numbers(spec.published), number=len(legend)))
        legend.append(PUBLISHED)
    x_axis = axis(type="category", tickvals=names)
    plot = plotly_figure(traces, xaxis=x_axis, yaxis=axis(spec.y_label), barmode="group")
    panel = Panel("", f"Bar chart of {len(names)} groups: {'; '.join(ranges)}.", plot)
    return Drawing(
        "bars",
        spec.title,
        join(notes),
        (panel,),
        legend=tuple(legend),
        ink=() if spec.published is None else (PUBLISHED,),
        wide=len(names) * len(spec.series) > BARS_IN_HALF_PAGE,
    )


def bar_data(spec: Bars, series: BarSeries) -> dict[str, np.ndarray]:
    """Heights of the bars, and interval ends if given; one for each name."""
    data = series_data(series)
    check_rows({"names": np.array(spec.names), **data})
    return data


def _bar_trace(names: list[str], series: BarSeries, number: int, data: dict[str, np.ndarray]) -> go.Bar:
    y = np.where(np.isfinite(data["y"]), data["y"], np.nan)
    meta = {"part": "bar", "series": number}
    bars = go.Bar(x=names, y=y, name=plain(series.name), meta=meta, hovertemplate="%{y:.4g}")
    if "low" in data and "high" in data:
        bars.error_y = {"type": "data", "array": data["high"] - y, "arrayminus": y - data["low"], "symmetric": False}
    return bars


def _published_trace(names: list[str], published: np.ndarray, number: int) -> go.Scatter:
    return go.Scatter(
        x=names,
        y=published,
        name=PUBLISHED,
        mode="markers",
        marker={"symbol": "line-ew", "size": 24, "line": {"width": 3}},
        meta={"part": "mark", "series": number},
        hovertemplate="%{y:.4g}",
    )


def _range(y: np.ndarray) -> str:
    finite = y[np.isfinite(y)]
    return f"from {finite.min():.4g} to {finite.max():.4g}" if len(finite) else "without a finite value"


def draw_curves(spec: Curves, arrays: Arrays, seed: int) -> Drawing:
    """Lines with intervals as bands. A series has the same colour in every panel."""
    del arrays, seed
    parts = spec.resolved_panels()
    names = list(dict.fromkeys(str(series.name) for part in parts for series in part.series))
    legend = names if any(len(part.series) > 1 for part in parts) else []
    label_width = LABEL_BESIDE_PANELS if len(parts) > 1 else LABEL_BESIDE_PLOT
    panels = []
    notes: list[str | None] = [spec.note]
    for part in parts:
        traces: list[go.Scatter] = []
        courses = []
        for series in part.series:
            data = series_data(series, series.x)
            number = legend.index(str(series.name)) if legend else 0
            traces += _curve_traces(series, number, data, bool(part.log_y))
            courses.append(f"{series.name} {_course(data['y'])}")
            notes.append(missing(series.name, data["y"]))
            if part.log_y:
                notes.append(_not_positive(series.name, data["y"]))
        y_axis = axis(spec.y_label, width=label_width, type="log" if part.log_y else "linear")
        x_axis = axis(part.x_label, **_x_scale(part))
        plot = plotly_figure(traces, xaxis=x_axis, yaxis=y_axis, hovermode="x unified")
        panels.append(Panel(str(part.title), f"Line chart: {'; '.join(courses)}.", plot))
    dashed = tuple(str(series.name) for part in parts for series in part.series if series.dash)
    return Drawing("curves", spec.title, join(notes), tuple(panels), legend=tuple(legend), dashed=dashed)


def _x_scale(part: CurvePanel) -> dict[str, Any]:
    """Type and ticks of the x axis.

    A logarithmic axis with few distinct values is labelled at these, because plotly labels the places between decades
    with single digits that do not show the decade.
    """
    if not part.log_x:
        return {"type": "linear"}
    places = np.unique(np.concatenate([numbers(series.x) for series in part.series]))
    if not 0 < len(places) <= LABELLED_PLACES:
        return {"type": "log"}
    return {"type": "log", "tickvals": places.tolist(), "ticktext": [f"{place:g}" for place in places]}


def _mode(series: Curve, points: int) -> str:
    """plotly's mode: points alone on request; lines with markers if there are few points."""
    if series.points:
        return "markers"
    return "lines+markers" if points <= MARKED_POINTS else "lines"


def _curve_traces(series: Curve, number: int, data: dict[str, np.ndarray], log: bool) -> list[go.Scatter]:
    line = go.Scatter(
        x=data["x"],
        y=np.where(np.isfinite(data["y"]), data["y"], np.nan),
        name=plain(series.name),
        mode=_mode(series, len(data["x"])),
        line={"dash": "dash"} if series.dash else None,
        meta={"part": "line", "series": number},
        hovertemplate="%{y:.4g}",
    )
    if "low" in data and "high" in data:
        return [_band(number, data, log), line]
    return [line]


def _band(number: int, data: dict[str, np.ndarray], log: bool) -> go.Scatter:
    keep = np.isfinite(data["low"]) & np.isfinite(data["high"])
    x, low, high = data["x"][keep], data["low"][keep], data["high"][keep]
    if log and (high > 0).any():  # a logarithmic axis cannot show the part of a band below zero
        low = np.maximum(low, high[high > 0].min() / 100)
    settings: dict[str, Any] = {"mode": "lines", "line": {"width": 0}, "fill": "toself", "hoverinfo": "skip"}
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([low, high[::-1]]),
        meta={"part": "band", "series": number},
        **settings,
    )


def _course(y: np.ndarray) -> str:
    finite = y[np.isfinite(y)]
    return f"from {finite[0]:.4g} to {finite[-1]:.4g}" if len(finite) else "without a finite value"


def _not_positive(name: object, y: np.ndarray) -> str:
    count = int((y <= 0).sum())
    return f"{name}: {count:,} values are not positive and not shown on the logarithmic axis." if count else ""


def draw_heatmap(spec: Heatmap, arrays: Arrays, seed: int) -> Drawing:
    """A matrix as colours, around zero if it has negative entries; the first row is on top."""
    del arrays, seed
    matrix = matrix_of(spec)
    rows, columns = matrix.shape
    x = _names("x", spec.x, columns)
    y = _names("y", spec.y, rows)
    finite = np.where(np.isfinite(matrix), matrix, np.nan)
    largest = float(np.nanmax(np.abs(finite))) if np.isfinite(finite).any() else 1.0
    largest = largest or 1.0
    signed = bool((finite < 0).any())
    trace = go.Heatmap(
        z=finite,
        zmin=-largest if signed else 0,
        zmax=largest,
        xgap=1,
        ygap=1,
        customdata=[[f"{row}, {column}" for column in x] for row in y],
        meta={"part": "matrix", "signed": signed},
        texttemplate="%{z:.2f}" if columns <= CELLS_WITH_NUMBERS else None,
        hovertemplate="%{customdata}<br>%{z:.4g}<extra></extra>",
        colorbar=colour_bar(),
    )
    plot = plotly_figure(
        [trace],
        xaxis=_matrix_axis(x, spec.x_label),
        yaxis=_matrix_axis(y, spec.y_label, autorange="reversed"),
    )
    alt = f"Heat map of a matrix with {rows} rows and {columns} columns, values up to {largest:.4g} in size."
    note = join([spec.note, missing("matrix", matrix)])
    return Drawing("heatmap", spec.title, note, (Panel("", alt, plot),))


def matrix_of(spec: Heatmap) -> np.ndarray:
    matrix = numbers(spec.matrix)
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"'matrix' must have rows and columns, but its shape is {matrix.shape}.")
    return matrix


def _names(field: str, names: Sequence[Any] | None, count: int) -> list[str]:
    if names is None:
        return [str(number) for number in range(count)]
    if len(names) != count:
        raise InputError(f"'{field}' has {len(names)} names for {count} rows or columns.")
    return [plain(name) for name in names]


def _matrix_axis(names: list[str], label: str | None, **settings: Any) -> dict[str, Any]:
    shown = range(0, len(names), max(1, -(-len(names) // TICKS)))
    ticks = {"tickvals": list(shown), "ticktext": [names[i] for i in shown]}
    return axis(label, width=40, showgrid=False, zeroline=False, ticks="", **ticks, **settings)
