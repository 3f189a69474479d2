"""Figures and tables of `social-views`: sample images, projections, controls, neighbourhoods, spectra and layers.

Sample images and projections are of the first seed of each scene. Images are read from their source, or, if that is
gone, taken from the small grey images beside the latents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jepatlas.alignment import Latents, PairedLatents
from jepatlas.alignment.similarity import NEIGHBOURS, cka_debiased
from jepatlas.core.errors import InputError
from jepatlas.core.figures import (
    Bars,
    Curve,
    CurvePanel,
    Curves,
    Figure,
    Heatmap,
    ImagePanel,
    ImageRow,
    Images,
    Scatter,
    Table,
)
from jepatlas.core.pictures import as_pictures, shrunk, spread_rows
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import (
    bars,
    cell,
    curve,
    extremes,
    grouped,
    mean_and_range,
    plain,
    select,
    spread,
)
from jepatlas.experiments.social.agent_pairs import (
    COMPARED,
    NAMES,
    held_out_layers,
    pair_latents,
    scored_rows,
    split_of,
    translate,
)
from jepatlas.experiments.social.scenes import SCENES, Scene
from jepatlas.recipes import VisionRecipe, load_recipe, read_images
from jepatlas.workflows.align.align_figures import projections

__all__ = [
    "MAX_POINTS",
    "controls_figure",
    "controls_table",
    "layers_figure",
    "neighbours_figure",
    "neighbours_table",
    "sample_figures",
    "scores_table",
    "spectrum_figure",
]

Scenes = Mapping[str, Sequence[Result]]
Arrays = dict[str, np.ndarray]
MAX_ROWS, MAX_STATES, MAX_POINTS, DIGITS = 300, 8, 200, 3
PUBLISHABLE = ("rendered",)
"""Scenes whose images may be published; images of other data sets stay in the local record."""
MARGINS = {"beyond": "R²", "beyond_raw": "R² as they are", "beyond_dsc": "DSC", "beyond_nos_10": "NOS@10"}
MEASURES = {
    "r2": "R², standardised",
    "r2_raw": "R², as they are",
    "dsc": "DSC",
    "nos_10": "NOS@10",
    "dsc_there": "DSC, no inverse",
    "nos_10_there": "NOS@10, no inverse",
}


def scores_table(pairs: Sequence[Result]) -> Table:
    """One row per pair of agents, unfinished ones included."""
    numbers = {
        "p_r2": ("p", ".2f"),
        "cka": ("CKA", ".3f"),
        "kappa": ("κ(W)", ".1f"),
        "orthogonality": ("orthogonality error, whitened", ".2f"),
        "directions": ("directions", ".1f"),
        "loss": ("loss", ".3f"),
    }
    intervals = {
        "r2": "R²",
        "r2_raw": "R² as they are",
        "dsc": "DSC",
        "nos_10": "NOS@10",
        **{key: f"{title} beyond the best control" for key, title in MARGINS.items()},
        "beyond_pixels": "R² beyond PCA of the first view",
    }
    columns = ["scene", "seed", "agents", *intervals.values(), *(title for title, _ in numbers.values())]
    rows = []
    for pair in pairs:
        row = [SCENES[pair.at["scene"]].title, pair.at["seed"], pair.status]
        row += [cell(pair.estimate(name)) for name in intervals]
        row += [plain(pair.value(name), shape) for name, (_, shape) in numbers.items()]
        rows.append(row)
    return Table("Held-out states, with 95% intervals by groups", columns, rows)


def controls_table(scenes: Scenes) -> Table:
    """Agents and controls, between standardised latents and between latents as they are."""
    rows = []
    for scene, runs in scenes.items():
        for name in NAMES:
            cells = [extremes(mean_and_range(runs, _key(measure, name))) for measure in MEASURES]
            rows.append([SCENES[scene].title, NAMES[name], *cells])
    for scene in _published_settings(scenes):
        r2, dsc, nos = map(str, scene.published)
        rows.append([scene.setting, "published", r2, "–", dsc, nos, "–", "–"])
    title = "Agents and controls: means over seeds (lowest to highest); for NOS, lower is better"
    return Table(title, ["scene", "of", *MEASURES.values()], rows)


def _key(measure: str, name: str) -> str:
    return measure if name == "agents" else f"{measure}_{name}"


def _published_settings(scenes: Iterable[str]) -> list[Scene]:
    """One scene for each published setting."""
    return list({SCENES[scene].setting: SCENES[scene] for scene in scenes}.values())


def controls_figure(scenes: Scenes) -> Bars:
    series = []
    for name in COMPARED:
        series.append(bars(NAMES[name], [mean_and_range(runs, _key("r2", name)) for runs in scenes.values()]))
    return Bars(
        title="Held-out R² of trained agents and controls",
        y_label="held-out R²",
        names=list(scenes),
        series=series,
        published=[SCENES[scene].published[0] for scene in scenes],
        note="Between standardised latents. Means over seeds with the lowest and highest; dashes: published for the "
        "nearest setting.",
    )


def neighbours_table(scenes: Scenes) -> Table:
    rows = []
    for scene, runs in scenes.items():
        finished = [run for run in runs if run.status == "finished"]
        for name in COMPARED:
            cells = [spread([run.value(f"nos_{k}_of_{name}") for run in finished]) for k in NEIGHBOURS]
            rows.append([SCENES[scene].title, NAMES[name], *cells])
    rows += [[scene.setting, "published", *map(str, scene.neighbours)] for scene in _published_settings(scenes)]
    columns = ["scene", "of", *(f"NOS@{k}" for k in NEIGHBOURS)]
    return Table("Neighbourhoods: mean ± standard deviation over seeds", columns, rows)


def neighbours_figure(scenes: Scenes) -> Curves:
    panels = []
    for scene, runs in scenes.items():
        lines = []
        for name in COMPARED:
            points = [mean_and_range(runs, f"nos_{k}_of_{name}") for k in NEIGHBOURS]
            lines.append(curve(NAMES[name], NEIGHBOURS, points))
        lines.append(Curve("published", list(NEIGHBOURS), list(SCENES[scene].neighbours), dash=True))
        panels.append(CurvePanel(lines, SCENES[scene].title))
    return Curves(
        title="Share of the k nearest neighbours that differ",
        log_x=True,
        x_label="k",
        y_label="NOS@k, lower is better",
        panels=panels,
    )


def spectrum_figure(results: Sequence[Result]) -> Curves:
    """Singular values of the map between standardised latents, for the first seed of each scene."""
    lines = []
    for scene, (first, second) in _first_pairs(results).items():
        pair = pair_latents(first, second)
        values = translate(pair, pair.a.h, pair.b.h).fitted.conditioning_.singular_values
        values = values[values > 0]
        lines.append(Curve(SCENES[scene].title, list(range(1, len(values) + 1)), values.tolist()))
    return Curves(
        title="Singular values of the map: equal for an isometry",
        x_label="index",
        y_label="singular value",
        log_y=True,
        series=lines,
    )


def layers_figure(results: Sequence[Result]) -> list[Heatmap]:
    """Debiased CKA between all layers of two agents, for the first seed of each scene."""
    figures = []
    for scene, (first, second) in _first_pairs(results).items():
        pair = pair_latents(first, second)
        assert pair.ids is not None
        held = pair.ids[split_of(pair).score][:MAX_ROWS]
        layers = [held_out_layers(result, held) for result in (first, second)]
        if not layers[0]:
            continue
        names = [str(number + 1) for number in range(len(layers[0]))]
        figures.append(
            Heatmap(
                title=f"Debiased CKA of layers: {SCENES[scene].title}",
                matrix=[[cka_debiased(one, other) for other in layers[1]] for one in layers[0]],
                x=names,
                y=names,
                x_label="layer of the second agent",
                y_label="layer of the first",
            )
        )
    return figures


def sample_figures(results: Sequence[Result]) -> tuple[list[Figure], Arrays]:
    """Both views of some states of all scenes, projections of the latents of each scene, and the arrays they show."""
    panels: dict[bool, list[ImagePanel]] = {True: [], False: []}
    figures, arrays = [], {}
    for scene, (first, second) in _first_pairs(results).items():
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


def _first_pairs(results: Sequence[Result]) -> dict[str, tuple[Result, Result]]:
    """Per scene, both agents of the first seed at which both finished."""
    found = {}
    finished = [result for result in results if result.status == "finished"]
    for (scene, _), runs in grouped(finished, "scene", "seed").items():
        first, second = select(runs, view=0), select(runs, view=1)
        if first and second and scene not in found:
            found[scene] = (first[0], second[0])
    return found
