"""The figures of a record on one sheet, as a paper prints them, from the specs that the page is drawn from."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jepatlas.base.files import write_bytes
from jepatlas.report.bars import PUBLISHED, bar_data
from jepatlas.report.colours import wheel
from jepatlas.report.drawing import Arrays, Spec, numbers
from jepatlas.report.film import film_frames
from jepatlas.report.landscape import landscape_axes, landscape_values

__all__ = ["paper_figure"]

ACROSS = 4  # panels in a row
SIZE = 3.0  # inches of a panel


def paper_figure(figures: Sequence[Spec], arrays: Arrays, path: Path, caption: str = "") -> None:
    """Draw all panels of all figures to a PNG; the caption says which commit, seeds and recipe made them."""
    panels = [(spec, part) for spec in figures for part in spec.get("panels", [spec])]
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
        figure.supxlabel(caption, fontsize=6, color="0.4")
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
    ax.set_xlabel(str(spec.get("x_label", "")), fontsize=8)
    ax.set_ylabel(str(spec.get("y_label", "")), fontsize=8)
    if len(part["series"]) > 1:
        ax.legend(fontsize=6)


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
    ax.set_xticks(places, [str(name) for name in part["names"]], rotation=20)
    ax.set_ylabel(str(spec.get("y_label", "")), fontsize=8)
    ax.legend(fontsize=6)


def _mark(ax: Axes, places: np.ndarray) -> None:
    """Label a logarithmic axis where the points are, if they are few: within a decade its own labels overlap."""
    if len(places) <= 8:
        ax.set_xticks(places, [f"{place:g}" for place in places])
        ax.set_xticks([], minor=True)


def _scatter(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    del spec
    points = arrays[part["x"]][:, part.get("columns", [0, 1])]
    colour: Any = "C0"
    if part.get("color"):
        colour = wheel(arrays[part["color"]][:, part.get("color_columns", [0, 1])])
    ax.scatter(points[:, 0], points[:, 1], s=2, c=colour, linewidths=0)
    ax.set_aspect("equal", adjustable="datalim")


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


def _landscape(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    fields = [landscape_values(panel, arrays) for panel in spec["panels"]]
    top = max((field[np.isfinite(field)].max() for field in fields if np.isfinite(field).any()), default=1.0)
    field = landscape_values(part, arrays)
    x, y = landscape_axes(part, field)
    ax.set_facecolor("0.7")  # what is not reached
    ax.pcolormesh(x, y, np.ma.masked_invalid(field), vmin=0, vmax=top, cmap="viridis", shading="nearest")
    for number, path in enumerate(part.get("paths", [])):
        ax.plot(*np.asarray(arrays[path["points"]]).T, color=f"C{number + 1}", linewidth=1.2, label=str(path["name"]))
    for mark in part.get("marks", []):
        ax.plot(*mark["at"], "x", color="white", markersize=5)
    ax.set_aspect("equal")
    if part.get("paths"):
        ax.legend(fontsize=6, loc="upper right")


def _film(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    """On paper, the frames at five times, one row for each strip."""
    del spec
    films = [film_frames(strip, arrays) for strip in part["strips"]]
    last = max(map(len, films)) - 1
    times = np.linspace(0, last, 5).round().astype(int)
    rows = [np.concatenate([film[min(t, len(film) - 1)] for t in times], 1) for film in films]
    ax.imshow(np.concatenate(rows, 0))
    ax.set_xticks([])
    ax.set_yticks(
        [(i + 0.5) * films[0].shape[1] for i in range(len(films))], [str(strip["name"]) for strip in part["strips"]]
    )


_PANELS = {"bars": _bars, "curves": _curves, "film": _film, "scatter": _scatter, "heatmap": _heatmap,
           "landscape": _landscape}  # fmt: skip
