"""Both views of the same states, and both agents' latents of them before and after the map: to look at.

For the first seed of each scene. Images are read again from where the agents had them; where they are gone since, the
small ones that lie beside the latents must do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Scatter
from jepatlas.core.linear import subsample
from jepatlas.core.pictures import as_pictures, shrunk, spread_rows
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.social.charts import Met, meet
from jepatlas.experiments.social.measures import translate
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.views_shown import first_pairs
from jepatlas.recipes import VisionRecipe, load_recipe, read_images
from jepatlas.workflows.align.align_figures import projections

__all__ = ["pictures"]

Spec = dict[str, Any]
Arrays = dict[str, np.ndarray]
STATES, POINTS, DIGITS = 8, 200, 3
OURS = ("rendered",)
"""Scenes whose images may be published; those of others are not ours to give away, and stay with the local record."""


def pictures(results: Sequence[Result]) -> tuple[list[Spec], Arrays]:
    """Figures with the images of all scenes, one with the projections of each, and the arrays that they show."""
    panels: dict[bool, list[Spec]] = {True: [], False: []}
    figures, arrays = [], {}
    for scene, (first, second) in first_pairs(results).items():
        met = meet(first, second)
        panel, images = _both_views(scene, met, (first, second))
        panels[scene in OURS] += panel
        figure, points = _projected(scene, met)
        figures.append(figure)
        arrays |= images | points
    samples = [
        {"kind": "images", "title": "The same held-out states, as the two agents see them", "panels": found}
        | ({} if ours else {"local": True})
        for ours, found in panels.items()
        if found
    ]
    return [*samples, *figures], arrays


def _both_views(scene: str, met: Met, pair: tuple[Result, Result]) -> tuple[list[Spec], Arrays]:
    held = met.split.score
    labels = met.a["labels"][held] if "labels" in met.a else None
    rows = held[spread_rows(len(held), STATES, labels)]
    states = [str(state) for state in met.a["ids"][rows]]
    found = [_images(one, side, rows, states) for one, side in zip(pair, (met.a, met.b), strict=True)]
    arrays = {f"{scene}_view{number}": shrunk(images) for number, images in enumerate(found) if images is not None}
    if len(arrays) < 2:
        return [], {}
    shown = [{"name": name, "images": array} for name, array in zip(_names(scene), arrays, strict=True)]
    return [{"title": SCENES[scene].title, "captions": states, "rows": shown}], arrays


def _images(result: Result, side: Arrays, rows: np.ndarray, states: list[str]) -> np.ndarray | None:
    try:
        seen = read_images(load_recipe(result.folder, VisionRecipe))
        place = {state: row for row, state in enumerate(seen.table.column("state").tolist())}
        return np.asarray(seen.images[[place[state] for state in states]])
    except (InputError, KeyError):
        return as_pictures(side["raw"][rows])


def _projected(scene: str, met: Met) -> tuple[Scatter, Arrays]:
    """Standardised latents of held-out states, and what the map of the others makes of the first agent's."""
    found = translate(met, met.a["h"], met.b["h"], POINTS)
    rows = subsample(met.split.score, POINTS)
    labels = met.a["labels"][rows] if "labels" in met.a else None
    one, other = _names(scene)
    matched = PairedLatents(Latents(one, found.own, labels=labels), Latents(other, found.target))
    (figure,), arrays = projections(matched, found.predicted, prefix=f"{scene}_")
    figure = replace(
        figure,
        title=f"Latents before and after the map: {SCENES[scene].title}",
        note=f"Principal components of standardised latents, first seed. {figure.note}",
        panels=[replace(panel, title=f"{scene}: {panel.title}") for panel in figure.panels],
    )
    return figure, {name: array if array.dtype.kind == "U" else array.round(DIGITS) for name, array in arrays.items()}


def _names(scene: str) -> tuple[str, str]:
    one, other = (
        view or f"pipeline {', '.join(pipelines)}"
        for view, pipelines in zip(SCENES[scene].views, SCENES[scene].pipelines, strict=True)
    )
    return one, other
