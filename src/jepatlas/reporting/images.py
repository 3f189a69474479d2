"""Sample images: rows are views (or what was made of them), columns are states, the same ones one above the other.

    {"kind": "images", "title", "note", "panels": [{"title", "captions",
     "rows": [{"name", "images": array (b, height, width, 3)}]}]}

`captions` has one text for each column. Rows may differ in the size of their images, not in their number. Each image is
a PNG inside the page, and a cell of a table, so that a reader who does not see them still learns what is shown.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from jepatlas.core.errors import InputError
from jepatlas.reporting.drawing import Arrays, Drawing, Panel, Spec
from jepatlas.reporting.film import film_frames, png

__all__ = ["draw_images", "image_rows"]

COARSE = 96  # pixels: images up to this width are shown larger than they are, and every pixel as a square


@dataclass(frozen=True)
class Shown:
    """One image: a data URI, and what stands for it where it cannot be seen."""

    source: str
    alt: str


@dataclass(frozen=True)
class ImagesPanel(Panel):
    captions: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[Shown, ...]], ...] = ()
    coarse: bool = True


def draw_images(spec: Spec, arrays: Arrays, seed: int) -> Drawing:
    del seed
    panels = []
    for part in spec["panels"]:
        rows = image_rows(part, arrays)
        captions = tuple(map(str, part["captions"]))
        shown = tuple((name, _shown(name, images, captions)) for name, images in rows)
        alt = f"Images of {len(captions)} states, one row each: {', '.join(name for name, _ in rows)}."
        coarse = max(images.shape[2] for _, images in rows) <= COARSE
        panels.append(ImagesPanel(str(part.get("title", "")), alt, go.Figure(), captions, shown, coarse))
    return Drawing("images", str(spec.get("title", "")), str(spec.get("note", "")), tuple(panels), wide=True)


def image_rows(part: Spec, arrays: Arrays) -> list[tuple[str, np.ndarray]]:
    """The name and the images of each row: as many as there are captions."""
    rows = [(str(row["name"]), film_frames({"frames": row["images"]}, arrays)) for row in part["rows"]]
    if not rows:
        raise InputError("'rows' is empty: there is no image to show.")
    for name, images in rows:
        if len(images) != len(part["captions"]):
            raise InputError(f"row '{name}' has {len(images)} images for {len(part['captions'])} captions.")
    return rows


def _shown(name: str, images: np.ndarray, captions: tuple[str, ...]) -> tuple[Shown, ...]:
    sources = [base64.b64encode(png(image)).decode() for image in images]
    return tuple(
        Shown(f"data:image/png;base64,{source}", f"{name}: {caption}")
        for source, caption in zip(sources, captions, strict=True)
    )
