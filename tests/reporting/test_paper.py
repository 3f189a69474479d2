"""Figures for print: nothing overlaps, and nothing is cut off."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet

from jepatlas.core.figures import Bars, BarSeries, Curve, Curves, Figure, Heatmap
from jepatlas.reporting.paper import draw_panels

NAMES = ("masked_autoencoder_small", "lejepa", "random, as fixed", "Gaussian\nρ .995", "moco_v3", "a control", "dino")
CAPTION = "jepatlas reproduce lambda-rho --scale small --seed 0   " + "41 trials at commit 375100c15904, " * 6


def bars(names: Sequence[str], legend: Sequence[str]) -> Bars:
    heights = np.linspace(0.2, 1, len(names)).tolist()
    return Bars(title="T", names=names, series=[BarSeries(name, heights) for name in legend], y_label="R²")


def log_curves(places: Sequence[float], count: int) -> Curves:
    series = [Curve(f"a long name of series {number}", places, places) for number in range(count)]
    return Curves(title="T", x_label="error", y_label="AUC", log_x=True, series=series)


FIGURES: dict[str, list[Figure]] = {
    "bars": [bars(NAMES, "abc")],
    "bars in small panels": [bars(NAMES, ("one", "another one", "a third one of many words"))] * 3,
    "less than two decades": [log_curves(np.geomspace(0.031, 0.43, 20).tolist(), 6)],
    "less than one decade": [log_curves(np.geomspace(0.21, 1.3, 20).tolist(), 2)],
    "places close together": [log_curves([5, 9, 50, 100, 500, 1000, 5000, 20000], 3)] * 3,
    "long legends": [log_curves([1, 10, 100], 5)] * 2,
    "heat map": [Heatmap(title="T", matrix=np.eye(7).tolist(), x=NAMES, y=NAMES)] * 2,
}


@pytest.fixture(params=FIGURES)
def drawn(request: pytest.FixtureRequest) -> tuple[Sheet, Any]:
    sheet = Sheet(layout="constrained")
    canvas = FigureCanvasAgg(sheet)
    draw_panels(sheet, FIGURES[request.param], {}, CAPTION)
    canvas.draw()
    return sheet, canvas.get_renderer()


def test_labels_of_ticks_do_not_overlap(drawn: tuple[Sheet, Any]):
    sheet, renderer = drawn
    for ax in sheet.axes:
        for axis in (ax.xaxis, ax.yaxis):
            shown = [label for label in axis.get_ticklabels(which="both") if label.get_text() and label.get_visible()]
            turned = any(label.get_rotation() for label in shown)
            boxes = [label.get_window_extent(renderer) for label in shown]
            if turned:  # the ends of turned names are at the ticks, and the names are parallel
                assert min(np.diff([box.x1 for box in boxes])) > renderer.points_to_pixels(7)
            else:
                assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_nothing_is_cut_off(drawn: tuple[Sheet, Any]):
    sheet, renderer = drawn
    whole = sheet.bbox
    for part in (*sheet.texts, sheet._supxlabel, *(ax for ax in sheet.axes)):  # pyright: ignore
        box = part.get_tightbbox(renderer)
        assert box.x0 >= whole.x0 - 3 and box.x1 <= whole.x1 + 3 and box.y0 >= whole.y0 - 3 and box.y1 <= whole.y1 + 3


def test_legends_below_panels_cover_neither_panels_nor_labels(drawn: tuple[Sheet, Any]):
    sheet, renderer = drawn
    legends = [ax.get_legend().get_window_extent(renderer) for ax in sheet.axes if ax.get_legend()]
    below = [box for box in legends if not any(box.overlaps(ax.bbox) for ax in sheet.axes)]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(below, 2))
    for box, ax in itertools.product(below, sheet.axes):
        assert not any(box.overlaps(label.get_window_extent(renderer)) for label in ax.get_xticklabels())
