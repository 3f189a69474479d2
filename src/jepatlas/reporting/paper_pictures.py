"""Panels of a sheet that are pictures: landscapes, frames of films, and sample images."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from jepatlas.reporting.drawing import Arrays, Spec
from jepatlas.reporting.film import film_frames
from jepatlas.reporting.images import image_rows
from jepatlas.reporting.landscape import landscape_axes, landscape_values

__all__ = ["film_panel", "images_panel", "landscape_panel"]

LETTERS = 20  # of a caption under an image


def landscape_panel(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
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


def film_panel(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
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


def images_panel(ax: Axes, spec: Spec, part: Spec, arrays: Arrays) -> None:
    """Rows of images, each image a square of one unit whatever its size; captions below the last row."""
    del spec
    rows = image_rows(part, arrays)
    for down, images in enumerate(images for _, images in rows):
        for across, image in enumerate(images):
            ax.imshow(image, extent=(across, across + 0.96, down + 0.96, down), interpolation="nearest")
    ax.set(xlim=(0, len(part["captions"])), ylim=(len(rows), 0), aspect="equal")
    ax.set_yticks(np.arange(len(rows)) + 0.48, [name for name, _ in rows])
    captions = [_brief(str(caption)) for caption in part["captions"]]
    ax.set_xticks(np.arange(len(captions)) + 0.48, captions, rotation=40, ha="right", rotation_mode="anchor")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _brief(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
