"""Drawing of any figure spec for the page, by the drawer of its kind.

A drawing has one plotly figure per panel. The page puts panels side by side on wide screens and below each other on
narrow ones. To add a kind of figure, add its class to `core/figures.py` and its drawer to `DRAWERS` here and in
`paper.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure
from jepatlas.reporting.drawing import Arrays, Drawing
from jepatlas.reporting.image_figures import draw_film, draw_images
from jepatlas.reporting.landscape import draw_landscape
from jepatlas.reporting.plots import draw_bars, draw_curves, draw_heatmap
from jepatlas.reporting.scatter import draw_scatter

__all__ = ["DRAWERS", "draw"]

DRAWERS: dict[str, Callable[[Any, Arrays, int], Drawing]] = {
    "bars": draw_bars,
    "curves": draw_curves,
    "film": draw_film,
    "heatmap": draw_heatmap,
    "images": draw_images,
    "landscape": draw_landscape,
    "scatter": draw_scatter,
}


def draw(figure: Figure, arrays: Arrays | None = None, *, seed: int = 0) -> Drawing:
    """Draw a figure; `seed` chooses the samples where there are too many to show.

    >>> from jepatlas.core.figures import Heatmap
    >>> drawing = draw(Heatmap(title="WᵀW", matrix=[[1, 0], [0, 1]]))
    >>> drawing.panels[0].alt
    'Heat map of a matrix with 2 rows and 2 columns, values up to 1 in size.'
    """
    where = f"Figure '{figure.title}' of kind '{figure.kind}'"
    try:
        return DRAWERS[figure.kind](figure, arrays or {}, seed)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} cannot be drawn: {error}") from error
