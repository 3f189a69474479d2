"""What an agent on images sees, to look at: some of its states, as they are and as it is given them to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from jepatlas.core.pictures import shrunk, spread_rows
from jepatlas.core.records import Crops
from jepatlas.data.images import ImageStream, ViewTable
from jepatlas.recipes import ViewImages, VisionRecipe

__all__ = ["captions_of", "crops_figure", "labels_of"]

MOST = 8
CROPS = 4

Shown = tuple[dict[str, Any], dict[str, np.ndarray]]


def crops_figure(recipe: VisionRecipe, seen: ViewImages) -> Shown:
    """Some of the images that it learns from and, below, the crops of its first step of just these."""
    labels = labels_of(seen.table, seen.learnt)
    some = seen.learnt[spread_rows(len(seen.learnt), MOST, labels)]
    plan = recipe.augmentation.plan(recipe.objective)
    stream = ImageStream(seen.images, len(some), recipe.seed, plan=plan, rows=some, shuffle=recipe.shuffle)
    made = _made(stream(0), stream.rows_of(0), some)
    arrays = {"seen": shrunk(np.asarray(seen.images[some]))} | {f"crop_{i}": crop for i, crop in enumerate(made)}
    names = ["as it is", *(f"crop {number + 1}" for number in range(len(made)))]
    shown = [{"name": name, "images": array} for name, array in zip(names, arrays, strict=True)]
    figure = {
        "kind": "images",
        "title": f"What the agent sees of {_view(seen.table)}, and the crops that it learns from",
        "note": f"Crops are made anew in every step (pipeline {', '.join(plan.pipelines)})"
        + ("; which patches are hidden is drawn beyond that." if plan.crops == "one" else ".")
        + ("" if recipe.shuffle is None else " Their structure is destroyed first, as the recipe asks."),
        "panels": [{"captions": captions_of(seen.table, some), "rows": shown}],
    }
    return figure, arrays


def _made(crops: Crops, rows: np.ndarray, some: np.ndarray) -> list[np.ndarray]:
    """The crops in the order of `some`, as bytes."""
    order = [int(np.flatnonzero(rows == row)[0]) for row in some]
    return [shrunk(_bytes(crop)[order]) for crop in crops.all[:CROPS]]


def _bytes(crop: Tensor) -> np.ndarray:
    light = crop if crop.is_floating_point() else crop / 255
    return (255 * light.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).numpy()


def labels_of(table: ViewTable, rows: np.ndarray) -> np.ndarray | None:
    """Labels of these rows; None where one of them has none."""
    labels = table.columns["label"][rows] if "label" in table.columns else None
    return None if labels is None or (labels == "").any() else labels


def captions_of(table: ViewTable, rows: np.ndarray) -> list[str]:
    """The state of each row, with its label where the state's name does not say it."""
    states, labels = [str(state) for state in table.column("state")[rows]], labels_of(table, rows)
    if labels is None:
        return states
    return [state if label in state else f"{label}, {state}" for state, label in zip(states, labels, strict=True)]


def _view(table: ViewTable) -> str:
    return f"view {table.views[0]}"
