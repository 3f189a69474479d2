"""What a figure becomes when it is drawn, and the few pieces every kind of figure is made of.

Colours that depend on the theme are left to the page's script: a trace only says in `meta` which part it plays
("points", "line", "band", "matrix", "blank") and the number of its series. All text that reaches plotly goes through
`plain`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

__all__ = ["Arrays", "ColourKey", "Drawing", "Panel", "Spec", "axis", "figure", "join", "missing", "numbers", "plain"]

Spec = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Panel:
    """One plot; `alt` says in words what it shows."""

    title: str
    alt: str
    figure: go.Figure


@dataclass(frozen=True)
class ColourKey:
    """What the colours of the samples mean."""

    shape: Literal["wheel", "ramp"]
    text: str


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: panels under one title. `legend` names the series in the order of their colours."""

    kind: str
    title: str
    note: str
    panels: tuple[Panel, ...]
    legend: tuple[str, ...] = ()
    keys: tuple[ColourKey, ...] = ()


def plain(text: object) -> str:
    """Text that plotly shows letter by letter: it would read tags as markup.

    >>> plain("<b>h</b>")
    '&lt;b&gt;h&lt;/b&gt;'
    """
    return html.escape(str(text), quote=False)


def numbers(values: Sequence[Any]) -> np.ndarray:
    """An array of floats from plain data, where "nan" and "inf" are text."""
    return np.asarray(values, dtype=object).astype(float)


def axis(label: object = "", **settings: Any) -> dict[str, Any]:
    title = {"title": {"text": plain(label), "standoff": 8}} if label else {}
    return {**title, "automargin": True, **settings}


def figure(traces: Sequence[Any], **layout: Any) -> go.Figure:
    margin = {"l": 8, "r": 8, "t": 8, "b": 8}
    return go.Figure(list(traces), {"template": "none", "margin": margin, "showlegend": False, **layout})


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
