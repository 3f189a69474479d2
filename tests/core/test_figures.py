"""Figure specs: JSON round trips, unknown fields, and all published records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.figures import (
    KINDS,
    Bars,
    BarSeries,
    Curve,
    CurvePanel,
    Curves,
    Figure,
    Film,
    FilmPanel,
    FilmStrip,
    Heatmap,
    ImagePanel,
    ImageRow,
    Images,
    Landscape,
    LandscapeMark,
    LandscapePanel,
    LandscapePath,
    Scatter,
    ScatterPanel,
    Table,
    figure_from_json,
    table_from_json,
)
from jepatlas.core.files import read_json
from jepatlas.core.records import Record

RECORDS = sorted((Path(__file__).parents[2] / "docs/results").glob("*.json"))
PATHS = [LandscapePath("way", "points")]
MARKS = [LandscapeMark("goal", [0, 1])]
ONE_OF_EACH = [
    Bars(title="B", names=["a", "b"], series=[BarSeries("s", [1, 2], [0, 1], [2, 3])], published=[0.5, "nan"]),
    Curves(title="C", log_x=True, series=[Curve("s", [1, 2], [3, 4], dash=True), Curve("p", [1], [2], points=True)]),
    Curves(title="C", panels=[CurvePanel([Curve("s", [1], [3])], "left", x_label="n", log_y=False)], note="N"),
    Film(title="F", panels=[FilmPanel([FilmStrip("driven", "frames")], "Task 1")]),
    Heatmap(title="H", matrix=[[1, "inf"]], x=["a", "b"], y=[0], x_label="x"),
    Images(title="I", panels=[ImagePanel(["one"], [ImageRow("view", "images")])], local=True),
    Landscape(
        title="L",
        label="energy",
        panels=[
            LandscapePanel(
                "field",
                "to",
                [0, 1],
                [0, 2],
                PATHS,
                MARKS,
            )
        ],
    ),
    Scatter(title="S", panels=[ScatterPanel("h", "latent", [0, 1], range="one", color="z", color_columns=[0])]),
]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("figure", ONE_OF_EACH, ids=lambda figure: figure.kind)
def test_json_round_trip(figure: Figure):
    plain = json.loads(json.dumps(figure.to_json()))
    assert plain["kind"] == figure.kind and plain == without_nulls(plain)
    assert figure_from_json(plain) == figure


def test_every_kind_is_covered():
    assert {figure.kind for figure in ONE_OF_EACH} == set(KINDS)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_published_records_round_trip(path: Path):
    record = read_json(path)
    for data in record["figures"]:
        assert figure_from_json(data).to_json() == without_nulls(data)
    for data in record["tables"]:
        assert table_from_json(data).to_json() == data


@pytest.mark.parametrize("figure", ONE_OF_EACH, ids=lambda figure: figure.kind)
def test_unknown_and_missing_fields_are_named(figure: Figure):
    plain = figure.to_json()
    with pytest.raises(InputError, match=rf"'{figure.title}'.*'{figure.kind}'.*'titel'.*'title'"):
        figure_from_json(plain | {"titel": "T"})
    part = next(key for key in ("panels", "series", "matrix") if key in plain)
    with pytest.raises(InputError, match=part):
        figure_from_json({key: value for key, value in plain.items() if key != part})
    if part != "matrix":
        with pytest.raises(InputError, match=rf"{part}\[0\].*'colour'"):
            figure_from_json(plain | {part: [plain[part][0] | {"colour": "red"}]})
        for wrong in (3, "text", [3]):
            with pytest.raises(InputError, match=part):
                figure_from_json(plain | {part: wrong})


def test_unknown_kinds_are_named():
    with pytest.raises(InputError, match=r"'scater'.*'scatter'"):
        figure_from_json({"kind": "scater", "title": "T"})


def test_curves_need_series_or_panels():
    for given in ({}, {"series": [], "panels": []}):
        with pytest.raises(InputError, match="'series' or 'panels'"):
            Curves(title="T", **given)


def test_panels_inherit_from_the_figure():
    panels = [CurvePanel([]), CurvePanel([], "own", x_label="m", log_x=False, log_y=True)]
    first, second = Curves(title="T", x_label="n", log_x=True, panels=panels).resolved_panels()
    assert (first.x_label, first.log_x, first.log_y) == ("n", True, False)
    assert (second.x_label, second.log_x, second.log_y) == ("m", False, True)


def test_tables_are_checked():
    table = Table("T", ["a"], [[1], [None]])
    assert table_from_json(table.to_json()) == table
    with pytest.raises(InputError, match="'cells'"):
        table_from_json(table.to_json() | {"cells": []})


def test_record_saves_its_figures(tmp_path: Path):
    Record("R", "S", {}, figures=tuple(ONE_OF_EACH), tables=(Table("T", ["a"], [[1.5]]),)).save(tmp_path, "r")
    saved = read_json(tmp_path / "records/r.json")
    assert [figure_from_json(data) for data in saved["figures"]] == ONE_OF_EACH
    assert saved["tables"] == [{"title": "T", "columns": ["a"], "rows": [[1.5]]}]
