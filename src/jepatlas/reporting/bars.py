"""Bars side by side, one group for each name, each with its interval as a whisker where `low` and `high` are given.

    {"kind": "bars", "title", "note", "y_label", "names", "series": [{"name", "y", "low", "high"}], "published"}

`published` has one number for each name, or NaN; they are drawn as marks across the groups.
"""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.arrays import check_rows
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec, axis, figure, join, missing, numbers, plain

__all__ = ["PUBLISHED", "bar_data", "draw_bars"]

PUBLISHED = "published"
NARROW = 12  # bars that have room for their whiskers and names in half of the page


def draw_bars(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    """One colour for each series; what is published has one of its own."""
    del arrays, seed
    names = [plain(name) for name in spec["names"]]
    traces, notes, legend = [], [spec.get("note")], [str(series["name"]) for series in spec["series"]]
    for number, series in enumerate(spec["series"]):
        data = bar_data(spec, series)
        traces.append(_bars(names, plain(series["name"]), number, data))
        notes.append(missing(series["name"], data["y"]))
    if PUBLISHED in spec:
        legend.append(PUBLISHED)
        marks = {"symbol": "line-ew", "size": 24, "line": {"width": 3}}
        meta = {"part": "mark", "series": len(legend) - 1}
        traces.append(
            go.Scatter(
                x=names,
                y=numbers(spec[PUBLISHED]),
                name=PUBLISHED,
                mode="markers",
                marker=marks,
                meta=meta,
                hovertemplate="%{y:.4g}",
            )
        )
    plot = figure(
        traces, xaxis=axis(type="category", tickvals=names), yaxis=axis(spec.get("y_label", "")), barmode="group"
    )
    shown = "; ".join(f"{series['name']} {_range(bar_data(spec, series)['y'])}" for series in spec["series"])
    panel = Panel("", f"Bar chart of {len(names)} groups: {shown}.", plot)
    return Drawing(
        "bars",
        str(spec.get("title", "")),
        join(notes),
        (panel,),
        legend=tuple(legend),
        ink=(PUBLISHED,) if PUBLISHED in spec else (),
        wide=len(names) * len(spec["series"]) > NARROW,
    )


def bar_data(spec: Spec, series: Spec) -> dict[str, np.ndarray]:
    """Heights and, where they are given, ends of the intervals: as many as there are names."""
    data = {key: numbers(series[key]) for key in ("y", "low", "high") if series.get(key) is not None}
    check_rows({"names": np.array(spec["names"]), **data})
    return data


def _bars(names: list[str], name: str, number: int, data: dict[str, np.ndarray]) -> go.Bar:
    y = np.where(np.isfinite(data["y"]), data["y"], np.nan)
    bars = go.Bar(x=names, y=y, name=name, meta={"part": "bar", "series": number}, hovertemplate="%{y:.4g}")
    if "low" in data and "high" in data:
        bars.error_y = {"type": "data", "array": data["high"] - y, "arrayminus": y - data["low"], "symmetric": False}
    return bars


def _range(y: np.ndarray) -> str:
    finite = y[np.isfinite(y)]
    return f"from {finite.min():.4g} to {finite.max():.4g}" if len(finite) else "without a finite value"
