"""From a figure spec, as records keep it, to a drawing. A new kind of figure is one module and one line in `KINDS`.

A drawing has one plotly figure per panel: panels stand side by side on a laptop and below each other on a phone.
"""

from __future__ import annotations

from collections.abc import Callable

from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure, as_figure
from jepatlas.reporting.bars import draw_bars
from jepatlas.reporting.curves import draw_curves
from jepatlas.reporting.drawing import Arrays, Drawing, Spec
from jepatlas.reporting.film import draw_film
from jepatlas.reporting.heatmap import draw_heatmap
from jepatlas.reporting.images import draw_images
from jepatlas.reporting.landscape import draw_landscape
from jepatlas.reporting.scatter import draw_scatter

__all__ = ["KINDS", "draw"]

KINDS: dict[str, Callable[[Spec, Arrays, int], Drawing]] = {
    "bars": draw_bars,
    "curves": draw_curves,
    "film": draw_film,
    "heatmap": draw_heatmap,
    "images": draw_images,
    "landscape": draw_landscape,
    "scatter": draw_scatter,
}


def draw(spec: Figure | Spec, arrays: Arrays | None = None, *, seed: int = 0) -> Drawing:
    """Draw one spec; `seed` chooses the samples where there are more than can be told apart.

    >>> drawing = draw({"kind": "heatmap", "title": "WᵀW", "matrix": [[1, 0], [0, 1]]})
    >>> drawing.panels[0].alt
    'Heat map of a matrix with 2 rows and 2 columns, values up to 1 in size.'
    """
    figure = as_figure(spec)
    where = f"Figure '{figure.title}' of kind '{figure.kind}'"
    try:
        return KINDS[figure.kind](figure.to_json(), arrays or {}, seed)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except KeyError as error:
        raise InputError(f"{where} needs {error}.") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} cannot be drawn: {error}") from error
