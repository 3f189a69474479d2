"""Curves over a common axis, each with its interval as a band where `low` and `high` are given.

    {"kind": "curves", "title", "note", "x_label", "y_label", "log_x", "log_y",
     "series": [{"name", "x", "y", "low", "high", "points", "dash"}]}

`points` leaves out the line, `dash` breaks it. In place of `series` there may be `panels`, each with its own title,
series, x_label, log_x and log_y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.arrays import check_rows
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec, axis, figure, join, missing, numbers, plain

__all__ = ["draw_curves"]

NARROW = 18  # letters in a line beside a panel that has others beside it: more would not fit its height
FEW = 8  # places on a logarithmic axis that have labels of their own
WIDE = 40  # beside a panel of its own


def draw_curves(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    """One line per series; a series has the same colour in every panel."""
    del arrays, seed
    parts = spec.get("panels", [spec])
    names = list(dict.fromkeys(str(series["name"]) for part in parts for series in part["series"]))
    legend = names if any(len(part["series"]) > 1 for part in parts) else []
    panels, notes = [], [spec.get("note")]
    for part in parts:
        log, log_x = (bool(part.get(key, spec.get(key, False))) for key in ("log_y", "log_x"))
        traces, ranges = [], []
        for series in part["series"]:
            data = {key: numbers(series[key]) for key in ("x", "y", "low", "high") if series.get(key) is not None}
            check_rows(data)
            number = legend.index(str(series["name"])) if legend else 0
            traces += _traces(series, number, data, log)
            ranges.append(f"{series['name']} {_course(data['y'])}")
            notes += [missing(series["name"], data["y"]), _hidden(series["name"], data["y"]) if log else ""]
        letters = NARROW if len(parts) > 1 else WIDE
        y_axis = axis(spec.get("y_label", ""), width=letters, type="log" if log else "linear")
        x_axis = axis(part.get("x_label", spec.get("x_label", "")), **_scale(part, log_x))
        plot = figure(traces, xaxis=x_axis, yaxis=y_axis, hovermode="x unified")
        title = "" if part is spec else str(part.get("title", ""))
        panels.append(Panel(title, f"Line chart: {'; '.join(ranges)}.", plot))
    dashed = tuple(str(series["name"]) for part in parts for series in part["series"] if series.get("dash"))
    return Drawing(
        "curves", str(spec.get("title", "")), join(notes), tuple(panels), legend=tuple(legend), dashed=dashed
    )


def _scale(part: Spec, log: bool) -> dict[str, Any]:
    """A logarithmic axis is labelled where the points are, if they are few: plotly's own labels there are single
    digits, of which nobody knows the decade."""
    places = np.unique(np.concatenate([numbers(series["x"]) for series in part["series"]])) if log else np.zeros(0)
    few = {"tickvals": places.tolist(), "ticktext": [f"{place:g}" for place in places]}
    return {"type": "log" if log else "linear"} | (few if 0 < len(places) <= FEW else {})


def _traces(series: Spec, number: int, data: dict[str, np.ndarray], log: bool) -> list[go.Scatter]:
    x, y = data["x"], np.where(np.isfinite(data["y"]), data["y"], np.nan)
    line = go.Scatter(
        x=x,
        y=y,
        name=plain(series["name"]),
        mode="markers" if series.get("points") else "lines+markers" if len(x) <= 12 else "lines",
        line={"dash": "dash"} if series.get("dash") else None,
        meta={"part": "line", "series": number},
        hovertemplate="%{y:.4g}",
    )
    return [_band(number, data, log), line] if "low" in data and "high" in data else [line]


def _band(number: int, data: dict[str, np.ndarray], log: bool) -> go.Scatter:
    keep = np.isfinite(data["low"]) & np.isfinite(data["high"])
    x, low, high = data["x"][keep], data["low"][keep], data["high"][keep]
    if log and (high > 0).any():  # a logarithmic axis has no place for the part of a band below zero
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


def _hidden(name: object, y: np.ndarray) -> str:
    count = int((y <= 0).sum())
    return f"{name}: {count:,} values are not positive and have no place on the logarithmic axis." if count else ""
