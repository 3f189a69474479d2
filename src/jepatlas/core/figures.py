"""Figures and tables of a record, as typed declarative specs.

One class per kind of figure: `Bars`, `Curves`, `Film`, `Heatmap`, `Images`, `Landscape` and `Scatter`. A spec holds
plain data and the names of arrays that are saved beside the record; `jepatlas.reporting` draws it. This module imports
neither torch nor a plotting library.

    Curves(title="Loss", x_label="step", series=[Curve("train", [0, 1, 2], [3.0, 2.0, 1.5])])

`figure.to_json()` leaves out optional fields that are None and empty titles, and `figure_from_json` reads the result
back. Numbers that JSON cannot represent are saved as the strings "nan", "inf" and "-inf"; all numeric fields accept
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, TypeVar

from jepatlas.core.errors import InputError, did_you_mean

__all__ = [
    "KINDS",
    "BarSeries",
    "Bars",
    "Curve",
    "CurvePanel",
    "Curves",
    "Figure",
    "Film",
    "FilmPanel",
    "FilmStrip",
    "Heatmap",
    "ImagePanel",
    "ImageRow",
    "Images",
    "Landscape",
    "LandscapeMark",
    "LandscapePanel",
    "LandscapePath",
    "Scatter",
    "ScatterPanel",
    "Table",
    "figure_from_json",
    "table_from_json",
]

Values = Sequence[float | str]
T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """Rows of plain cells: text, numbers, booleans, or None for an empty cell."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Fields that all kinds of figures share."""

    kind: ClassVar[str]

    title: str = ""
    note: str | None = None
    """A sentence below the figure."""
    local: bool | None = None
    """True for figures that must not be published, for example because they show images of a licensed data set."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **_to_json(self)}


@dataclass(frozen=True)
class BarSeries:
    """Bars of one colour: one height for each name, with optional interval ends."""

    name: str
    y: Values
    low: Values | None = None
    high: Values | None = None


@dataclass(frozen=True, kw_only=True)
class Bars(Figure):
    """Groups of bars. `published` has one reference value per name ("nan" for none), drawn as marks."""

    kind: ClassVar[str] = "bars"
    parts: ClassVar[Mapping[str, type]] = {"series": BarSeries}

    names: Sequence[str]
    series: Sequence[BarSeries]
    y_label: str | None = None
    published: Values | None = None


@dataclass(frozen=True)
class Curve:
    """One line; `low` and `high` are the ends of its interval, drawn as a band."""

    name: str
    x: Values
    y: Values
    low: Values | None = None
    high: Values | None = None
    points: bool | None = None
    """Draw markers without a line."""
    dash: bool | None = None
    """Draw a dashed line."""


@dataclass(frozen=True)
class CurvePanel:
    """One of several plots of curves; a field that is None has the value that the figure gives."""

    parts: ClassVar[Mapping[str, type]] = {"series": Curve}

    series: Sequence[Curve]
    title: str = ""
    x_label: str | None = None
    log_x: bool | None = None
    log_y: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Curves(Figure):
    """Line charts: either one plot of `series`, or several `panels`."""

    kind: ClassVar[str] = "curves"
    parts: ClassVar[Mapping[str, type]] = {"series": Curve, "panels": CurvePanel}

    series: Sequence[Curve] | None = None
    panels: Sequence[CurvePanel] | None = None
    x_label: str | None = None
    y_label: str | None = None
    log_x: bool | None = None
    log_y: bool | None = None

    def __post_init__(self) -> None:
        if (self.series is None) == (self.panels is None):
            given = "neither" if self.series is None else "both"
            raise InputError(
                f"Figure '{self.title}' of kind 'curves' needs 'series' or 'panels', but {given} is given."
            )

    def resolved_panels(self) -> list[CurvePanel]:
        """All plots, with the values that they inherit from the figure."""
        panels = [CurvePanel(self.series)] if self.series is not None else self.panels or []
        return [
            replace(
                panel,
                x_label=self.x_label if panel.x_label is None else panel.x_label,
                log_x=bool(self.log_x if panel.log_x is None else panel.log_x),
                log_y=bool(self.log_y if panel.log_y is None else panel.log_y),
            )
            for panel in panels
        ]


@dataclass(frozen=True)
class FilmStrip:
    """One film; `frames` names an array (t, height, width, 3) of bytes."""

    name: str
    frames: str


@dataclass(frozen=True)
class FilmPanel:
    """Films that play side by side."""

    parts: ClassVar[Mapping[str, type]] = {"strips": FilmStrip}

    strips: Sequence[FilmStrip]
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Film(Figure):
    """Episodes as films. In a panel, a shorter strip waits at its last frame."""

    kind: ClassVar[str] = "film"
    parts: ClassVar[Mapping[str, type]] = {"panels": FilmPanel}

    panels: Sequence[FilmPanel]


@dataclass(frozen=True, kw_only=True)
class Heatmap(Figure):
    """A matrix as colours. `x` and `y` name its columns and rows."""

    kind: ClassVar[str] = "heatmap"

    matrix: Sequence[Values]
    x: Sequence[Any] | None = None
    y: Sequence[Any] | None = None
    x_label: str | None = None
    y_label: str | None = None


@dataclass(frozen=True)
class ImageRow:
    """A row of images; `images` names an array (b, height, width, 3) of bytes."""

    name: str
    images: str


@dataclass(frozen=True)
class ImagePanel:
    """Rows of images with one caption for each column."""

    parts: ClassVar[Mapping[str, type]] = {"rows": ImageRow}

    captions: Sequence[str]
    rows: Sequence[ImageRow]
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Images(Figure):
    """Sample images: rows are views, columns are states."""

    kind: ClassVar[str] = "images"
    parts: ClassVar[Mapping[str, type]] = {"panels": ImagePanel}

    panels: Sequence[ImagePanel]


@dataclass(frozen=True)
class LandscapePath:
    """A path; `points` names an array (k, 2)."""

    name: str
    points: str


@dataclass(frozen=True)
class LandscapeMark:
    """A marked point (x, y)."""

    name: str
    at: Sequence[float]


@dataclass(frozen=True)
class LandscapePanel:
    """A field over a plane; `values` names an array (rows, columns), `x` and `y` are the first and last coordinate."""

    parts: ClassVar[Mapping[str, type]] = {"paths": LandscapePath, "marks": LandscapeMark}

    values: str
    title: str = ""
    x: Sequence[float] | None = None
    y: Sequence[float] | None = None
    paths: Sequence[LandscapePath] | None = None
    marks: Sequence[LandscapeMark] | None = None


@dataclass(frozen=True, kw_only=True)
class Landscape(Figure):
    """Scalar fields, such as an energy to a goal, on one colour scale. `label` names the scale."""

    kind: ClassVar[str] = "landscape"
    parts: ClassVar[Mapping[str, type]] = {"panels": LandscapePanel}

    panels: Sequence[LandscapePanel]
    label: str | None = None


@dataclass(frozen=True)
class ScatterPanel:
    """Two `columns` of the array named `x`; panels with the same `range` have the same axis limits.

    `color` names an array with one row per point: one or two columns of numbers (`color_columns`), or names.
    """

    x: str
    title: str | None = None
    columns: Sequence[int] | None = None
    label: str | None = None
    range: str | None = None
    color: str | None = None
    color_columns: Sequence[int] | None = None
    color_label: str | None = None


@dataclass(frozen=True, kw_only=True)
class Scatter(Figure):
    """Scatter plots of the same samples in different coordinates."""

    kind: ClassVar[str] = "scatter"
    parts: ClassVar[Mapping[str, type]] = {"panels": ScatterPanel}

    panels: Sequence[ScatterPanel]


KINDS: Mapping[str, type[Figure]] = {cls.kind: cls for cls in (Bars, Curves, Film, Heatmap, Images, Landscape, Scatter)}


def figure_from_json(data: Mapping[str, Any]) -> Figure:
    """The figure that `Figure.to_json` wrote.

    >>> figure_from_json({"kind": "heatmap", "title": "WᵀW", "matrix": [[1, 0], [0, 1]]}).matrix
    [[1, 0], [0, 1]]
    """
    kind = str(data.get("kind"))
    where = f"Figure '{data.get('title', '')}' of kind '{kind}'"
    if kind not in KINDS:
        raise InputError(f"{where}: unknown kind '{kind}'. {did_you_mean(kind, KINDS)}")
    return _from_json(KINDS[kind], {key: value for key, value in data.items() if key != "kind"}, where)


def table_from_json(data: Mapping[str, Any]) -> Table:
    """The table that `Table.to_json` wrote."""
    return _from_json(Table, {"title": "", **data}, f"Table '{data.get('title', '')}'")


def _from_json(cls: type[T], data: Any, where: str) -> T:
    known = {field.name: field for field in fields(cls)}  # pyright: ignore[reportArgumentType]
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: expected an object with the fields {', '.join(known)}, but found {data!r:.80}.")
    for key in data:
        if key not in known:
            raise InputError(f"{where}: unknown field '{key}'. {did_you_mean(str(key), known)}")
    for name, field in known.items():
        if field.default is MISSING and name not in data:
            raise InputError(f"{where} needs the field '{name}'. Fields: {', '.join(known)}.")
    values = dict(data)
    for name, part in getattr(cls, "parts", {}).items():
        items = values.get(name)
        if items is None:
            continue
        if not isinstance(items, list | tuple):
            raise InputError(f"{where}: '{name}' must be a list, but it is {items!r:.80}.")
        values[name] = [_part_from_json(part, item, f"{where}, {name}[{i}]") for i, item in enumerate(items)]
    return cls(**values)


def _part_from_json(cls: type[T], data: Any, where: str) -> T:
    return data if isinstance(data, cls) else _from_json(cls, data, where)


def _to_json(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _to_json(getattr(value, f.name)) for f in fields(value) if not _is_absent(f, value)}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value


def _is_absent(field: Field[Any], owner: Any) -> bool:
    value = getattr(owner, field.name)
    return value is None or (field.name == "title" and value == "")
