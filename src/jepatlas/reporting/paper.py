"""The figures of a record on one sheet, as a paper prints them, from the specs that the page is drawn from."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jepatlas.core.figures import Figure as FigureSpec
from jepatlas.core.figures import as_figure
from jepatlas.core.files import write_bytes
from jepatlas.reporting.bars import PUBLISHED, bar_data
from jepatlas.reporting.drawing import Arrays, Spec, numbers
from jepatlas.reporting.marks import marks_of, pick
from jepatlas.reporting.paper_pictures import film_panel, images_panel, landscape_panel
from jepatlas.reporting.scatter import common_reach

__all__ = ["paper_figure"]

ACROSS = 4  # panels in a row
SIZE = 3.0  # inches of a panel
MANY = 4  # names in a legend, from which on it stands below its panel
LETTERS = 20  # of the caption on an inch
FEW = 500  # samples, up to which they are drawn larger


def paper_figure(figures: Sequence[FigureSpec | Spec], arrays: Arrays, path: Path, caption: str = "") -> None:
    """Draw all panels of all figures to a PNG; the caption says which commit, seeds and recipe made them."""
    specs = [as_figure(spec).to_json() for spec in figures]
    panels = [(spec, part) for spec in specs for part in spec.get("panels", [spec])]
    columns = min(ACROSS, len(panels))
    rows = -(-len(panels) // columns)
    width = max(SIZE * 1.2 * columns, 2 * SIZE)  # room for the caption
    figure = Figure(figsize=(width, SIZE * rows + 0.3), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, (spec, part) in zip(axes, panels, strict=False):
        _PANELS[spec["kind"]](ax, spec, part, arrays)
        ax.set_title(str(part.get("title", "")), fontsize=8, wrap=True)
        ax.tick_params(labelsize=7)
    for ax in axes[len(panels) :]:
        ax.remove()
    if caption:
        figure.supxlabel("\n".join(wrap(caption, round(LETTERS * width))), fontsize=6, color="0.4")
    png = io.BytesIO()
    canvas.print_png(png)
    write_bytes(path, png.getvalue())


def _curves(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    del arrays
    for number, series in enumerate(part["series"]):
        x, y = numbers(series["x"]), numbers(series["y"])
        style = "o" if series.get("points") else "--" if series.get("dash") else "o-" if len(x) <= 12 else "-"
        ax.plot(x, y, style, color=f"C{number}", markersize=3, linewidth=1.2, label=str(series["name"]))
        if series.get("low") is not None and series.get("high") is not None:
            ax.fill_between(x, numbers(series["low"]), numbers(series["high"]), color=f"C{number}", alpha=0.2)
    for axis, scale in (("log_x", ax.set_xscale), ("log_y", ax.set_yscale)):
        if part.get(axis, spec.get(axis, False)):
            scale("log")
            if axis == "log_x":
                _mark(ax, np.unique(np.concatenate([numbers(series["x"]) for series in part["series"]])))
    ax.set_xlabel(str(part.get("x_label", spec.get("x_label", ""))), fontsize=8)
    ax.set_ylabel(str(spec.get("y_label", "")), fontsize=8)
    if len(part["series"]) > 1:
        _legend(ax, len(part["series"]))


def _legend(ax: Axes, count: int) -> None:
    """Inside, where there is room; many names would cover what they name, and stand below."""
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2, "frameon": False}
    ax.legend(fontsize=6, **(below if count >= MANY else {}))


def _bars(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    del arrays
    count, places = len(part["series"]), np.arange(len(part["names"]))
    for number, series in enumerate(part["series"]):
        data, width = bar_data(part, series), 0.8 / count
        x = places + (number - (count - 1) / 2) * width
        ax.bar(x, data["y"], width, color=f"C{number}", label=str(series["name"]))
        if "low" in data and "high" in data:
            ax.vlines(x, data["low"], data["high"], color="0.2", linewidth=0.8)
    if PUBLISHED in part:
        ax.hlines(numbers(part[PUBLISHED]), places - 0.4, places + 0.4, color="black", linestyle="--", label=PUBLISHED)
    ax.set_xticks(places, [str(name) for name in part["names"]], rotation=25, ha="right", rotation_mode="anchor")
    ax.set_ylabel(str(spec.get("y_label", "")), fontsize=8)
    _legend(ax, count + (PUBLISHED in part))


def _mark(ax: Axes, places: np.ndarray) -> None:
    """Label a logarithmic axis where the points are, if they are few: within a decade its own labels overlap."""
    if len(places) <= 8:
        ax.set_xticks(places, [f"{place:g}" for place in places])
        ax.set_xticks([], minor=True)


def _scatter(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    points = pick(arrays, part["x"], part.get("columns", [0, 1]))
    marks = marks_of(part, arrays, points)
    ax.scatter(points[:, 0], points[:, 1], s=2 if len(points) > FEW else 6, c=marks.colours or "C0", linewidths=0)
    if (reach := common_reach(spec, part, arrays)) is not None:
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
    ax.set_aspect("equal", adjustable="datalim" if reach is None else "box")
    names = [name for key in marks.keys for name in key.names]
    for name in names:
        ax.scatter([], [], s=12, color=name.colour, label=name.name)
    if names:
        _legend(ax, max(MANY, len(names)))


def _heatmap(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    del arrays
    matrix = numbers(part["matrix"])
    ax.imshow(np.where(np.isfinite(matrix), matrix, np.nan), cmap="viridis", aspect="auto")
    for axis, names in ((ax.set_xticks, part.get("x")), (ax.set_yticks, part.get("y"))):
        if names is not None:
            axis(range(len(names)), [str(name) for name in names])
    if matrix.shape[1] <= 10:
        middle = np.nanmean([np.nanmin(matrix), np.nanmax(matrix)])
        for (row, column), value in np.ndenumerate(matrix):
            ink = "white" if value < middle else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
    ax.set_xlabel(str(spec.get("x_label", "")), fontsize=8)
    ax.set_ylabel(str(spec.get("y_label", "")), fontsize=8)


_PANELS = {
    "bars": _bars,
    "curves": _curves,
    "film": film_panel,
    "heatmap": _heatmap,
    "images": images_panel,
    "landscape": landscape_panel,
    "scatter": _scatter,
}
