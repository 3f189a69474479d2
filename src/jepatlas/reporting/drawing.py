"""What a figure becomes when it is drawn, and the few pieces every kind of figure is made of.

Colours that depend on the theme are left to the page's script: a trace only says in `meta` which part it plays
("points", "line", "bar", "mark", "band", "matrix",
"blank") and the number of its series. All text that reaches plotly goes through
`plain`.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

__all__ = [
    "Arrays",
    "ColourKey",
    "Drawing",
    "KeyName",
    "Panel",
    "Spec",
    "axis",
    "figure",
    "join",
    "missing",
    "numbers",
    "plain",
    "to_scale",
    "wrapped",
]

Spec = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Panel:
    """One plot; `alt` says in words what it shows."""

    title: str
    alt: str
    figure: go.Figure


@dataclass(frozen=True)
class KeyName:
    """One name, with the mark that its samples have."""

    name: str
    colour: str
    symbol: str


@dataclass(frozen=True)
class ColourKey:
    """What the colours of the samples mean; each name where they stand for names."""

    shape: Literal["wheel", "ramp", "names"]
    text: str
    names: tuple[KeyName, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: panels under one title. `legend` names the series in the order of their colours; those that
    are drawn otherwise are `dashed`, or have the colour of `ink`."""

    kind: str
    title: str
    note: str
    panels: tuple[Panel, ...]
    legend: tuple[str, ...] = ()
    keys: tuple[ColourKey, ...] = ()
    dashed: tuple[str, ...] = ()
    ink: tuple[str, ...] = ()
    wide: bool = False
    """Whether one panel takes the whole width."""


def plain(text: object) -> str:
    """Text that plotly shows letter by letter: it would read tags as markup.

    >>> plain("<b>h</b>")
    '&lt;b&gt;h&lt;/b&gt;'
    """
    return html.escape(str(text), quote=False)


def numbers(values: Sequence[Any]) -> np.ndarray:
    """An array of floats from plain data, where "nan" and "inf" are text."""
    return np.asarray(values, dtype=object).astype(float)


def axis(label: object = "", *, width: int = 80, **settings: Any) -> dict[str, Any]:
    """An axis whose label is broken after so many letters."""
    title = {"title": {"text": wrapped(label, width), "standoff": 8}} if label else {}
    return {**title, "automargin": True, **settings}


def figure(traces: Sequence[Any], **layout: Any) -> go.Figure:
    margin = {"l": 8, "r": 8, "t": 8, "b": 8}
    return go.Figure(list(traces), {"template": "none", "margin": margin, "showlegend": False, **layout})


def to_scale(traces: Sequence[Any], labels: Sequence[object] = ("", ""), **settings: Any) -> go.Figure:
    """A plot on which a unit across is as long as one up.

    Its margins stand still: were they to follow the labels of the ticks, the scale would follow the margins and the
    labels the scale, round and round.
    """
    x, y = (axis(label, automargin=False, **settings) for label in labels)
    margin = {"l": 58 if labels[1] else 40, "r": 8, "t": 8, "b": 46 if labels[0] else 28}
    return figure(traces, xaxis=x, yaxis=y | {"scaleanchor": "x"}, hovermode="closest", margin=margin)


def wrapped(label: object, width: int) -> str:
    """A label of several lines, as plotly breaks them, none longer than so many letters unless a word is.

    >>> wrapped("error of R² & the map", 12)
    'error of R²<br>&amp; the map'
    """
    return "<br>".join(map(plain, textwrap.wrap(str(label), width, break_long_words=False, break_on_hyphens=False)))


def missing(name: object, values: np.ndarray) -> str:
    """A sentence about the values that no plot can show.

    >>> missing("r2", np.array([0.9, np.nan]))
    'r2: 1 of 2 values are not finite and not drawn.'
    """
    count = int((~np.isfinite(values)).sum())
    return f"{name}: {count:,} of {values.size:,} values are not finite and not drawn." if count else ""


def join(sentences: Iterable[object]) -> str:
    """One note from its sentences, each said once."""
    return " ".join(dict.fromkeys(str(sentence) for sentence in sentences if sentence))
