"""The states that were paired, to look at: what either side was given of them, where that is an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from jepatlas.alignment.paired import Latents, PairedLatents
from jepatlas.core.pictures import as_pictures, picture_range, shrunk, spread_rows

__all__ = ["pairs_figure"]

MOST = 8


def pairs_figure(matched: PairedLatents) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """A few held-out states as both models' raw input shows them, and the arrays of it; nothing where one of the two
    has no raw input, or one that is no image."""
    sides = (matched.a, matched.b)
    if not matched.has_raw:
        return [], {}
    rows = spread_rows(len(matched.a.h), MOST, matched.labels)
    shown = [None if side.raw is None else as_pictures(side.raw[rows], picture_range(side.raw)) for side in sides]
    arrays = {
        name: shrunk(images) for name, images in zip(("raw_a", "raw_b"), shown, strict=True) if images is not None
    }
    if len(arrays) < 2:
        return [], {}
    figure = {
        "kind": "images",
        "title": "The same held-out states, as the raw input of both models shows them",
        "note": " ".join(
            [
                "Raw input is what controls are made of, and may be less than the model saw.",
                *(_form(side) for side in sides),
            ]
        ),
        "panels": [
            {
                "captions": _captions(matched, rows),
                "rows": [{"name": side.name, "images": name} for side, name in zip(sides, arrays, strict=True)],
            }
        ],
    }
    return [figure], arrays


def _form(side: Latents) -> str:
    """What the file holds, and which of its numbers are black and white."""
    if side.raw is None:
        return ""
    low, high = picture_range(side.raw)
    shape = " × ".join(map(str, side.raw.shape[1:]))
    return f"{side.name}: {shape}, {side.raw.dtype}, {low:g} is black and {high:g} white."


def _captions(matched: PairedLatents, rows: np.ndarray) -> list[str]:
    """The id of each state, with its label where the id does not say it."""
    ids = matched.a.ids if matched.a.ids is not None else matched.b.ids
    named = [f"row {number}" for number in rows] if ids is None else [str(one) for one in ids[rows]]
    if matched.labels is None:
        return named
    labels = [str(label) for label in matched.labels[rows]]
    return [name if label in name else f"{label}, {name}" for label, name in zip(labels, named, strict=True)]
