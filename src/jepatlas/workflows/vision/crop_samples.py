"""Figure of some training images and the crops that an agent sees of them."""

from __future__ import annotations

import numpy as np

from jepatlas.core.figures import ImagePanel, ImageRow, Images
from jepatlas.core.pictures import shrunk, spread_rows
from jepatlas.core.records import Crops
from jepatlas.data.images import ImageStream, ViewTable
from jepatlas.recipes import ViewImages, VisionRecipe
from jepatlas.workflows.vision.vision_agent import labels_of

__all__ = ["crops_figure"]

SHOWN_IMAGES = 8
SHOWN_CROPS = 4


def crops_figure(recipe: VisionRecipe, seen: ViewImages) -> tuple[Images, dict[str, np.ndarray]]:
    """Some training images and their crops in the first step, with the arrays of the figure."""
    labels = labels_of(seen.table, seen.learnt)
    rows = seen.learnt[spread_rows(len(seen.learnt), SHOWN_IMAGES, labels)]
    plan = recipe.augmentation.plan(recipe.objective)
    stream = ImageStream(seen.images, len(rows), recipe.seed, plan=plan, rows=rows, shuffle=recipe.shuffle)
    arrays = {"seen": shrunk(np.asarray(seen.images[rows]))}
    names = ["original"]
    for number, crop in enumerate(_ordered_crops(stream(0), stream.rows_of(0), rows)):
        arrays[f"crop_{number}"] = crop
        names.append(f"crop {number + 1}")
    note = f"Crops are drawn anew in every step (pipeline {', '.join(plan.pipelines)})"
    note += ", and so are masked patches." if plan.crops == "one" else "."
    if recipe.shuffle is not None:
        note += " Images are shuffled first, as the recipe specifies."
    figure = Images(
        title=f"Images of view {seen.table.views[0]} and the crops used for training",
        note=note,
        panels=[
            ImagePanel(
                captions=_captions(seen.table, rows),
                rows=[ImageRow(name, array) for name, array in zip(names, arrays, strict=True)],
            )
        ],
    )
    return figure, arrays


def _ordered_crops(crops: Crops, rows: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """The first crops as uint8 images, in the order of `wanted`."""
    order = [int(np.flatnonzero(rows == row)[0]) for row in wanted]
    found = []
    for crop in crops.all[:SHOWN_CROPS]:
        unit = crop if crop.is_floating_point() else crop / 255
        pixels = (255 * unit.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).numpy()
        found.append(shrunk(pixels[order]))
    return found


def _captions(table: ViewTable, rows: np.ndarray) -> list[str]:
    """The state of each row, with its label unless the state's name contains it."""
    states = [str(state) for state in table.column("state")[rows]]
    labels = labels_of(table, rows)
    if labels is None:
        return states
    return [state if label in state else f"{label}, {state}" for state, label in zip(states, labels, strict=True)]
