"""Drawings of the page, and helpers that all kinds of figures share.

Colours that depend on the theme are set by the page's script. A trace's `meta` gives its role ("points", "line", "bar",
"mark", "band", "matrix" or "blank") and the number of its series. Text for plotly must pass through `plain`.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.arrays import check_rows
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.figures import BarSeries, Curve, Values

__all__ = [
    "Arrays",
    "ColourKey",
    "Drawing",
    "KeyName",
    "Panel",
    "axis",
    "colour_bar",
    "equal_scale_figure",
    "join",
    "missing",
    "named_array",
    "numbers",
    "plain",
    "plotly_figure",
    "series_data",
    "wrapped",
]

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Panel:
    """One plot; `alt` describes it in words."""

    title: str
    alt: str
    figure: go.Figure


@dataclass(frozen=True)
class KeyName:
    """One name of a colour key, with the colour and symbol of its samples."""

    name: str
    colour: str
    symbol: str


@dataclass(frozen=True)
class ColourKey:
    """The meaning of the samples' colours; `names` is set if the colours stand for names."""

    shape: Literal["wheel", "ramp", "names"]
    text: str
    names: tuple[KeyName, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: panels under one title."""

    kind: str
    title: str
    note: str
    panels: tuple[Panel, ...]
    legend: tuple[str, ...] = ()
    """Series names in the order of their colours."""
    keys: tuple[ColourKey, ...] = ()
    dashed: tuple[str, ...] = ()
    """Series with dashed lines."""
    ink: tuple[str, ...] = ()
    """Series in the colour of the text."""
    wide: bool = False
    """Whether a single panel takes the whole width of the page."""


def named_array(name: str, arrays: Arrays) -> np.ndarray:
    """An array of the record; InputError if there is none of that name."""
    if name not in arrays:
        raise InputError(f"there is no array '{name}'. {did_you_mean(str(name), arrays)}")
    return np.asarray(arrays[name])


def numbers(values: Sequence[Any]) -> np.ndarray:
    """An array of floats from plain data, in which "nan" and "inf" are strings."""
    return np.asarray(values, dtype=object).astype(float)


def series_data(series: BarSeries | Curve, x: Values | None = None) -> dict[str, np.ndarray]:
    """The coordinates of a series: `y`, and `x`, `low` and `high` if given. All must have the same length."""
    given = {"x": x, "y": series.y, "low": series.low, "high": series.high}
    data = {name: numbers(values) for name, values in given.items() if values is not None}
    check_rows(data)
    return data


def plain(text: object) -> str:
    """Text that plotly shows literally, because it would interpret tags as markup.

    >>> plain("<b>h</b>")
    '&lt;b&gt;h&lt;/b&gt;'
    """
    return html.escape(str(text), quote=False)


def wrapped(label: object, width: int) -> str:
    """A label broken into lines of at most `width` characters; longer words are kept whole.

    >>> wrapped("error of R² & the map", 12)
    'error of R²<br>&amp; the map'
    """
    lines = textwrap.wrap(str(label), width, break_long_words=False, break_on_hyphens=False)
    return "<br>".join(plain(line) for line in lines)


def missing(name: object, values: np.ndarray) -> str:
    """A sentence about the values that cannot be drawn; empty if there are none.

    >>> missing("r2", np.array([0.9, np.nan]))
    'r2: 1 of 2 values are not finite and not drawn.'
    """
    count = int((~np.isfinite(values)).sum())
    return f"{name}: {count:,} of {values.size:,} values are not finite and not drawn." if count else ""


def join(sentences: Iterable[object]) -> str:
    """One note from its sentences, without repetitions."""
    return " ".join(dict.fromkeys(str(sentence) for sentence in sentences if sentence))


def axis(label: str | None = None, *, width: int = 80, **settings: Any) -> dict[str, Any]:
    """Settings of an axis, whose label has lines of at most `width` characters."""
    title = {"title": {"text": wrapped(label, width), "standoff": 8}} if label else {}
    return {**title, "automargin": True, **settings}


def colour_bar(label: str | None = None) -> dict[str, Any]:
    bar: dict[str, Any] = {"thickness": 10, "outlinewidth": 0, "len": 0.8}
    return bar if label is None else {**bar, "title": {"text": plain(label), "side": "right"}}


def plotly_figure(traces: Sequence[Any], **layout: Any) -> go.Figure:
    margin = {"l": 8, "r": 8, "t": 8, "b": 8}
    return go.Figure(list(traces), {"template": "none", "margin": margin, "showlegend": False, **layout})


def equal_scale_figure(traces: Sequence[Any], labels: Sequence[str] = ("", ""), **settings: Any) -> go.Figure:
    """A plot whose two axes have the same scale.

    Its margins are fixed. Automatic margins depend on the tick labels, which depend on the scale, which depends on the
    margins; plotly would not converge.
    """
    x, y = (axis(label, automargin=False, **settings) for label in labels)
    margin = {"l": 58 if labels[1] else 40, "r": 8, "t": 8, "b": 46 if labels[0] else 28}
    return plotly_figure(traces, xaxis=x, yaxis=y | {"scaleanchor": "x"}, hovermode="closest", margin=margin)
