"""Sample images of two agents, and projections of their latents, for the first seed of each scene.

Images are read from their source, or, if that is gone, taken from the small grey images beside the latents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Figure, ImagePanel, ImageRow, Images, Scatter
from jepatlas.core.pictures import as_pictures, shrunk, spread_rows
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import grouped, select
from jepatlas.experiments.social.agent_pairs import pair_latents, scored_rows, split_of
from jepatlas.experiments.social.pair_measures import translate
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.recipes import VisionRecipe, load_recipe, read_images
from jepatlas.workflows.align.align_figures import projections

__all__ = ["MAX_POINTS", "first_pairs", "sample_figures"]

Arrays = dict[str, np.ndarray]
MAX_STATES = 8
MAX_POINTS = 200
DIGITS = 3
PUBLISHABLE = ("rendered",)
"""Scenes whose images may be published; images of other data sets stay in the local record."""


def first_pairs(results: Sequence[Result]) -> dict[str, tuple[Result, Result]]:
    """Per scene, both agents of the first seed at which both finished."""
    found = {}
    finished = [result for result in results if result.status == "finished"]
    for (scene, _), runs in grouped(finished, "scene", "seed").items():
        first = select(runs, view=0)
        second = select(runs, view=1)
        if first and second and scene not in found:
            found[scene] = (first[0], second[0])
    return found


def sample_figures(results: Sequence[Result]) -> tuple[list[Figure], Arrays]:
    """Both views of some states of all scenes, projections of the latents of each scene, and the arrays they show."""
    panels: dict[bool, list[ImagePanel]] = {True: [], False: []}
    figures = []
    arrays = {}
    for scene, (first, second) in first_pairs(results).items():
        pair = pair_latents(first, second)
        panel, images = _both_views(scene, pair, (first, second))
        panels[scene in PUBLISHABLE] += panel
        figure, points = _projections(scene, pair)
        figures.append(figure)
        arrays |= images | points
    samples = []
    for publishable, found in panels.items():
        if found:
            title = "The same held-out states in both views"
            samples.append(Images(title=title, panels=found, local=None if publishable else True))
    return [*samples, *figures], arrays


def _both_views(scene: str, pair: PairedLatents, agents: tuple[Result, Result]) -> tuple[list[ImagePanel], Arrays]:
    held = split_of(pair).score
    labels = pair.labels[held] if pair.labels is not None else None
    rows = held[spread_rows(len(held), MAX_STATES, labels)]
    assert pair.ids is not None
    states = [str(state) for state in pair.ids[rows]]
    arrays = {}
    for number, (agent, side) in enumerate(zip(agents, (pair.a, pair.b), strict=True)):
        images = _images(agent, side, rows, states)
        if images is not None:
            arrays[f"{scene}_view{number}"] = shrunk(images)
    if len(arrays) < 2:
        return [], {}
    shown = [ImageRow(name, array) for name, array in zip(_view_names(scene), arrays, strict=True)]
    return [ImagePanel(states, shown, SCENES[scene].title)], arrays


def _images(agent: Result, side: Latents, rows: np.ndarray, states: list[str]) -> np.ndarray | None:
    try:
        seen = read_images(load_recipe(agent.folder, VisionRecipe))
        place = {state: row for row, state in enumerate(seen.table.column("state").tolist())}
        return np.asarray(seen.images[[place[state] for state in states]])
    except (InputError, KeyError):
        assert side.raw is not None
        return as_pictures(side.raw[rows])


def _projections(scene: str, pair: PairedLatents) -> tuple[Scatter, Arrays]:
    """Principal components of standardised latents of held-out states, before and after the map."""
    found = translate(pair, pair.a.h, pair.b.h)
    rows = scored_rows(pair, MAX_POINTS)
    labels = pair.labels[rows] if pair.labels is not None else None
    one, other = _view_names(scene)
    shown = PairedLatents(Latents(one, found.source[rows], labels=labels), Latents(other, found.target[rows]))
    (figure,), arrays = projections(shown, found.predicted[rows], prefix=f"{scene}_")
    figure = replace(
        figure,
        title=f"Latents before and after the map: {SCENES[scene].title}",
        note=f"Principal components of standardised latents, first seed. {figure.note}",
        panels=[replace(panel, title=f"{scene}: {panel.title}") for panel in figure.panels],
    )
    return figure, {name: array if array.dtype.kind == "U" else array.round(DIGITS) for name, array in arrays.items()}


def _view_names(scene: str) -> list[str]:
    names = []
    for view, pipelines in zip(SCENES[scene].views, SCENES[scene].pipelines, strict=True):
        names.append(view or f"pipeline {', '.join(pipelines)}")
    return names
