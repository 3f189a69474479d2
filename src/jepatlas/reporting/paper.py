"""Figures of a record on one matplotlib sheet, for print and for notebooks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import IO, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, NullFormatter

from jepatlas.core.figures import (
    Bars,
    Curve,
    CurvePanel,
    Curves,
    Figure,
    FilmPanel,
    Heatmap,
    ImagePanel,
    Landscape,
    LandscapePanel,
    Scatter,
    ScatterPanel,
)
from jepatlas.core.files import write_bytes
from jepatlas.core.records import Verdict
from jepatlas.reporting.drawing import Arrays, numbers
from jepatlas.reporting.image_figures import frames_of, image_rows
from jepatlas.reporting.landscape import colour_scale_top, landscape_axes, landscape_path, landscape_values
from jepatlas.reporting.plots import LABELLED_PLACES, MARKED_POINTS, PUBLISHED, bar_data, matrix_of
from jepatlas.reporting.scatter import axis_labels, axis_limit, marks_of, points_of
from jepatlas.reporting.verdict_rows import verdict_row

__all__ = ["draw_panels", "draw_verdicts", "paper_figure", "write_png"]

ACROSS = 4  # panels in a row
SIZE = 3.0  # inches of a panel
LEGEND_INSIDE = 4  # legends with at least so many names stand below their panel
CAPTION_LETTERS = 20  # characters of the sheet's caption per inch
LETTERS = 14  # characters of a tick label per inch
LABEL_GAP = 0.08  # share of a logarithmic axis between two labels
LEGEND_LETTERS = 24  # longer names have a line of their own
LEGEND_DROP = 0.2  # of a panel's height, to a legend below it
IMAGE_CAPTION_LETTERS = 20
LARGE_POINTS = 500  # samples up to which points are drawn larger
CELLS_WITH_NUMBERS = 10  # columns up to which a heat map also shows its numbers
FILM_TIMES = 5
STATE_COLOURS = {True: "#1a7f37", False: "#cf222e", None: "0.45"}


def paper_figure(figures: Sequence[Figure], arrays: Arrays, path: Path, caption: str = "") -> None:
    """Draw all panels of all figures to a PNG, with a caption that says how they were made."""
    png = io.BytesIO()
    write_png(png, figures, arrays, caption)
    write_bytes(path, png.getvalue())


def write_png(
    file: IO[bytes],
    figures: Sequence[Figure],
    arrays: Arrays,
    caption: str = "",
    dpi: float | None = None,
) -> None:
    """Draw all panels of all figures as PNG to an open file; `dpi` defaults to that of matplotlib."""
    sheet = Sheet(layout="constrained", dpi=dpi)
    canvas = FigureCanvasAgg(sheet)
    draw_panels(sheet, figures, arrays, caption)
    canvas.print_png(file)


def draw_panels(sheet: Sheet, figures: Sequence[Figure], arrays: Arrays, caption: str = "") -> list[Axes]:
    """Draw all panels of all figures on an empty sheet, which is resized, and return their axes."""
    panels = [(figure, part) for figure in figures for part in _panels(figure)]
    columns = min(ACROSS, len(panels))
    rows = -(-len(panels) // columns)
    width = max(SIZE * 1.2 * columns, 2 * SIZE)  # at least wide enough for the caption
    sheet.set_size_inches(width, SIZE * rows + 0.3)
    axes = sheet.subplots(rows, columns, squeeze=False).ravel()
    for ax, (figure, part) in zip(axes, panels, strict=False):
        _DRAWERS[figure.kind](ax, figure, part, arrays)
        title = part.title or (figure.title if _is_single(figure) else "")
        ax.set_title(str(title), fontsize=8, wrap=True)
        ax.tick_params(labelsize=7)
    for ax in axes[len(panels) :]:
        ax.remove()
    if caption:
        sheet.supxlabel("\n".join(wrap(caption, round(CAPTION_LETTERS * width))), fontsize=6, color="0.4")
    return list(axes[: len(panels)])


def draw_verdicts(sheet: Sheet, verdicts: Sequence[Verdict]) -> Axes:
    """Draw the interval and the threshold of each check on an empty sheet, one row for each, each on its own scale."""
    rows = [(verdict, verdict_row(verdict)) for verdict in verdicts if verdict.threshold is not None]
    sheet.set_size_inches(2 * SIZE, max(1.0, 0.3 * len(rows) + 0.6))
    ax = sheet.subplots()
    for place, (verdict, row) in enumerate(rows):
        colour = STATE_COLOURS[verdict.passed]
        ax.text(1.02, place, row.value, transform=ax.get_yaxis_transform(), fontsize=7, va="center", color=colour)
        if row.gauge is None or row.gauge.good is None:
            continue
        start, end = row.gauge.good
        ax.barh(place, end - start, 0.7, left=start, color="0.92")
        ax.hlines(place, row.gauge.low, row.gauge.high, color=colour, linewidth=1.5)
        ax.plot(row.gauge.value, place, "o", color=colour, markersize=4)
    ax.set_yticks(range(len(rows)), [row.label for _, row in rows], fontsize=7)
    ax.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5), xticks=[])
    ax.set_title("Checks, each on its own scale: value, 95% interval and accepted range (grey)", fontsize=8)
    return ax


def _is_single(figure: Figure) -> bool:
    """Whether the figure is one plot, whose title is that of the figure."""
    return getattr(figure, "panels", None) is None


def _panels(figure: Figure) -> Sequence[Any]:
    if isinstance(figure, Curves):
        return figure.resolved_panels()
    return [figure] if _is_single(figure) else figure.panels  # pyright: ignore[reportAttributeAccessIssue]


def _curves(ax: Axes, spec: Curves, part: CurvePanel, arrays: Arrays) -> None:
    del arrays
    for number, series in enumerate(part.series):
        x, y = numbers(series.x), numbers(series.y)
        style = _line_style(series, len(x))
        ax.plot(x, y, style, color=f"C{number}", markersize=3, linewidth=1.2, label=str(series.name))
        if series.low is not None and series.high is not None:
            ax.fill_between(x, numbers(series.low), numbers(series.high), color=f"C{number}", alpha=0.2)
    if part.log_x:
        ax.set_xscale("log")
        _label_places(ax, np.unique(np.concatenate([numbers(series.x) for series in part.series])))
    if part.log_y:
        ax.set_yscale("log")
        ax.yaxis.set_minor_formatter(NullFormatter() if _decades(ax) > 1 else LogFormatter(labelOnlyBase=False))
    _label_axes(ax, part.x_label, spec.y_label)
    if len(part.series) > 1:
        _legend(ax, len(part.series))


def _line_style(series: Curve, points: int) -> str:
    if series.points:
        return "o"
    if series.dash:
        return "--"
    return "o-" if points <= MARKED_POINTS else "-"


def _label_places(ax: Axes, places: np.ndarray) -> None:
    """Label a logarithmic axis at the data if there are few places, and otherwise at 1, 2 and 5 of each decade.

    matplotlib's own labels within a decade overlap, and so do those of places that are close together.
    """
    if len(places) > LABELLED_PLACES:
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        return
    gap = LABEL_GAP * np.log(places[-1] / places[0])
    labels: list[str] = []
    last = -np.inf
    for place in places:
        shown = np.log(place) - last >= gap
        labels.append(f"{place:g}" if shown else "")
        last = np.log(place) if shown else last
    ax.set_xticks(places, labels)
    ax.set_xticks([], minor=True)


def _label_axes(ax: Axes, x_label: str | None, y_label: str | None) -> None:
    ax.set_xlabel(x_label or "", fontsize=8)
    ax.set_ylabel(y_label or "", fontsize=8)


def _decades(ax: Axes) -> float:
    low, high = ax.get_ylim()
    return np.log10(high / low)


def _legend(ax: Axes, count: int, drop: float = LEGEND_DROP) -> None:
    """A legend inside the panel; below it if there are many names, which would cover the data."""
    if count < LEGEND_INSIDE:
        ax.legend(fontsize=6)
        return
    longest = max(len(str(name)) for name in ax.get_legend_handles_labels()[1])
    columns = 1 if longest > LEGEND_LETTERS else 2
    ax.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -drop), ncols=columns, frameon=False)


def _names_below(ax: Axes, names: Sequence[object], width: float) -> bool:
    """Name the places of an axis, in lines that break between words or after an underscore; True if they are turned.

    Names whose longest word does not fit its share of the panel, `width` inches, are turned.
    """
    letters = max(4, int(LETTERS * width / len(names)))
    words = [re.sub("([_/])", r"\1 ", str(name)) for name in names]
    lines = [wrap(word, letters, break_long_words=False) or [""] for word in words]
    turned = max(len(line) for name in lines for line in name) > letters
    if turned:
        texts = [" ".join(str(name).split()) for name in names]
        ax.set_xticks(range(len(names)), texts, rotation=35, ha="right", rotation_mode="anchor")
    else:
        texts = ["\n".join(name).replace("_ ", "_").replace("/ ", "/") for name in lines]
        ax.set_xticks(range(len(names)), texts)
    return turned


def _bars(ax: Axes, spec: Bars, part: Bars, arrays: Arrays) -> None:
    del part, arrays
    count = len(spec.series)
    places = np.arange(len(spec.names))
    width = 0.8 / count
    for number, series in enumerate(spec.series):
        data = bar_data(spec, series)
        x = places + (number - (count - 1) / 2) * width
        ax.bar(x, data["y"], width, color=f"C{number}", label=str(series.name))
        if "low" in data and "high" in data:
            ax.vlines(x, data["low"], data["high"], color="0.2", linewidth=0.8)
    if spec.published is not None:
        published = numbers(spec.published)
        ax.hlines(published, places - 0.4, places + 0.4, color="black", linestyle="--", label=PUBLISHED)
    turned = _names_below(ax, spec.names, _panel_width(ax))
    _label_axes(ax, None, spec.y_label)
    if count > 1 or spec.published is not None:
        _legend(ax, LEGEND_INSIDE, 2 * LEGEND_DROP if turned else LEGEND_DROP)  # inside, it would cover bars


def _scatter(ax: Axes, spec: Scatter, part: ScatterPanel, arrays: Arrays) -> None:
    points = points_of(part, arrays)
    marks = marks_of(part, arrays, points)
    size = 2 if len(points) > LARGE_POINTS else 6
    ax.scatter(points[:, 0], points[:, 1], s=size, c=marks.colours or "C0", linewidths=0)
    limit = axis_limit(spec, part, arrays)
    if limit is not None:
        ax.set(xlim=(-limit, limit), ylim=(-limit, limit))
    ax.set_aspect("equal", adjustable="datalim" if limit is None else "box")
    _label_axes(ax, *axis_labels(part))
    names = [name for key in marks.keys for name in key.names]
    for name in names:
        ax.scatter([], [], s=12, color=name.colour, label=name.name)
    if names:
        _legend(ax, max(LEGEND_INSIDE, len(names)))


def _heatmap(ax: Axes, spec: Heatmap, part: Heatmap, arrays: Arrays) -> None:
    del part, arrays
    matrix = matrix_of(spec)
    ax.imshow(np.where(np.isfinite(matrix), matrix, np.nan), cmap="viridis", aspect="auto")
    if spec.x is not None:
        _names_below(ax, spec.x, _panel_width(ax) if spec.y is None else 0.7 * _panel_width(ax))
    if spec.y is not None:
        ax.set_yticks(range(len(spec.y)), [str(name) for name in spec.y])
    if matrix.shape[1] <= CELLS_WITH_NUMBERS:
        middle = np.nanmean([np.nanmin(matrix), np.nanmax(matrix)])
        for (row, column), value in np.ndenumerate(matrix):
            ink = "white" if value < middle else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=ink)
    _label_axes(ax, spec.x_label, spec.y_label)


def _landscape(ax: Axes, spec: Landscape, part: LandscapePanel, arrays: Arrays) -> None:
    top = colour_scale_top([landscape_values(panel, arrays) for panel in spec.panels])
    field = landscape_values(part, arrays)
    x, y = landscape_axes(part, field)
    ax.set_facecolor("0.7")  # unreachable places
    ax.pcolormesh(x, y, np.ma.masked_invalid(field), vmin=0, vmax=top, cmap="viridis", shading="nearest")
    for number, path in enumerate(part.paths or ()):
        ax.plot(*landscape_path(path, arrays).T, color=f"C{number + 1}", linewidth=1.2, label=str(path.name))
    for mark in part.marks or ():
        ax.plot(*mark.at, "x", color="white", markersize=5)
    ax.set_aspect("equal")
    if part.paths:
        ax.legend(fontsize=6, loc="upper right")


def _film(ax: Axes, spec: Figure, part: FilmPanel, arrays: Arrays) -> None:
    """Frames at five times, one row for each strip."""
    del spec
    films = [frames_of(strip.frames, arrays) for strip in part.strips]
    last = max(map(len, films)) - 1
    times = np.linspace(0, last, FILM_TIMES).round().astype(int)
    rows = [np.concatenate([film[min(t, len(film) - 1)] for t in times], 1) for film in films]
    ax.imshow(np.concatenate(rows, 0))
    ax.set_xticks([])
    height = films[0].shape[1]
    ax.set_yticks([(i + 0.5) * height for i in range(len(films))], [str(strip.name) for strip in part.strips])


def _images(ax: Axes, spec: Figure, part: ImagePanel, arrays: Arrays) -> None:
    """Rows of images, each drawn as a unit square whatever its size; captions below the last row."""
    del spec
    rows = image_rows(part, arrays)
    for down, (_, images) in enumerate(rows):
        for across, image in enumerate(images):
            ax.imshow(image, extent=(across, across + 0.96, down + 0.96, down), interpolation="nearest")
    ax.set(xlim=(0, len(part.captions)), ylim=(len(rows), 0), aspect="equal")
    ax.set_yticks(np.arange(len(rows)) + 0.48, [name for name, _ in rows])
    captions = [_shortened(str(caption)) for caption in part.captions]
    ax.set_xticks(np.arange(len(captions)) + 0.48, captions, rotation=40, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _panel_width(ax: Axes) -> float:
    """Inches of a panel, without the labels of its axis."""
    sheet, place = ax.get_figure(root=True), ax.get_subplotspec()
    if sheet is None or place is None:
        return SIZE
    return 0.85 * sheet.get_size_inches()[0] / place.get_gridspec().ncols


def _shortened(text: str) -> str:
    return text if len(text) <= IMAGE_CAPTION_LETTERS else f"{text[: IMAGE_CAPTION_LETTERS - 1]}…"


_DRAWERS: dict[str, Callable[[Axes, Any, Any, Arrays], None]] = {
    "bars": _bars,
    "curves": _curves,
    "film": _film,
    "heatmap": _heatmap,
    "images": _images,
    "landscape": _landscape,
    "scatter": _scatter,
}
