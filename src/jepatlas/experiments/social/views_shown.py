"""What two agents have in common, to look at: scores beside controls, neighbourhoods, the map's spectrum, layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jepatlas.alignment.similarity import NEIGHBOURS, cka_debiased
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
from jepatlas.experiments.social.charts import CONTROLS, NAMES, meet
from jepatlas.experiments.social.measures import translate
from jepatlas.experiments.social.scenes import SCENES, Scene

__all__ = [
    "BEYOND",
    "controls_figure",
    "controls_table",
    "first_pairs",
    "layers_figure",
    "neighbours_figure",
    "neighbours_table",
    "scores_table",
    "spectrum_figure",
]

Spec = dict[str, Any]
ROWS = 300
BEYOND = {"beyond": "R²", "beyond_raw": "R², as they are,", "beyond_dsc": "DSC", "beyond_nos_10": "NOS@10"}


def scores_table(pairs: Sequence[Result]) -> Spec:
    """One row for each pair of agents, those that were lost among them."""
    rows = [
        [
            SCENES[pair.at["scene"]].title,
            pair.at["seed"],
            pair.status,
            *(cell(pair.estimate(name)) for name in ("r2", "r2_raw", "dsc", "nos_10")),
            *(cell(pair.estimate(name)) for name in (*BEYOND, "beyond_pixels")),
            *(
                plain(pair.value(name), shape)
                for name, shape in (
                    ("p_r2", ".2f"),
                    ("cka", ".3f"),
                    ("kappa", ".1f"),
                    ("orthogonality", ".2f"),
                    ("directions", ".1f"),
                    ("loss", ".3f"),
                )
            ),
        ]
        for pair in pairs
    ]
    columns = [
        "scene",
        "seed",
        "agents",
        "R²",
        "R², as they are",
        "DSC",
        "NOS@10",
        *(f"{title} beyond the best control" for title in BEYOND.values()),
        "R² beyond what the first view's pixels tell of the second agent",
        "p",
        "CKA",
        "κ(W)",
        "orthogonality, whitened",
        "directions",
        "loss",
    ]
    return {"title": "Held-out states, with 95% intervals by groups", "columns": columns, "rows": rows}


def controls_table(scenes: Mapping[str, Sequence[Result]]) -> Spec:
    """The agents and every control, between standardised latents and between latents as they are."""
    measures = {
        "r2": "R², standardised",
        "r2_raw": "R², as they are",
        "dsc": "DSC",
        "nos_10": "NOS@10",
        "dsc_there": "DSC, no inverse",
        "nos_10_there": "NOS@10, no inverse",
    }
    rows = [
        [
            SCENES[scene].title,
            NAMES[name],
            *(extremes(mean_and_range(runs, f"{key}{_ending(name)}")) for key in measures),
        ]
        for scene, runs in scenes.items()
        for name in NAMES
    ]
    rows += [
        [scene.setting, "published", str(scene.published[0]), "–", *map(str, scene.published[1:]), "–", "–"]
        for scene in _settings(scenes)
    ]
    return {
        "title": "Beside the controls: means over seeds (lowest to highest); of NOS, lower is better",
        "columns": ["scene", "of", *measures.values()],
        "rows": rows,
    }


def _settings(scenes: Iterable[str]) -> list[Scene]:
    """One scene for each published setting."""
    return list({SCENES[scene].setting: SCENES[scene] for scene in scenes}.values())


def controls_figure(scenes: Mapping[str, Sequence[Result]]) -> Spec:
    names = [name for name in NAMES if name != "pixels"]
    series = [
        bars(NAMES[name], [mean_and_range(runs, f"r2{_ending(name)}") for runs in scenes.values()]) for name in names
    ]
    return {
        "kind": "bars",
        "title": "Held-out R² of agents, and of what learned nothing",
        "y_label": "held-out R²",
        "names": list(scenes),
        "series": series,
        "published": [SCENES[scene].published[0] for scene in scenes],
        "note": "Between standardised latents; means over seeds, with the lowest and the highest. Dashes: "
        "published for the nearest setting.",
    }


def _ending(name: str) -> str:
    return "" if name == "agents" else f"_{name}"


def neighbours_table(scenes: Mapping[str, Sequence[Result]]) -> Spec:
    rows = [
        [
            SCENES[scene].title,
            NAMES[name],
            *(
                spread([run.value(f"nos_{k}_of_{name}") for run in runs if run.status == "finished"])
                for k in NEIGHBOURS
            ),
        ]
        for scene, runs in scenes.items()
        for name in ("agents", *CONTROLS)
    ]
    rows += [[scene.setting, "published", *map(str, scene.neighbours)] for scene in _settings(scenes)]
    columns = ["scene", "of", *(f"NOS@{k}" for k in NEIGHBOURS)]
    return {"title": "Neighbourhoods, mean ± standard deviation over seeds", "columns": columns, "rows": rows}


def neighbours_figure(scenes: Mapping[str, Sequence[Result]]) -> Spec:
    panels = []
    for scene, runs in scenes.items():
        series = [
            curve(NAMES[name], NEIGHBOURS, [mean_and_range(runs, f"nos_{k}_of_{name}") for k in NEIGHBOURS])
            for name in ("agents", *CONTROLS)
        ]
        published = {"name": "published", "x": list(NEIGHBOURS), "y": list(SCENES[scene].neighbours), "dash": True}
        panels.append({"title": SCENES[scene].title, "series": [*series, published]})
    return {
        "kind": "curves",
        "title": "Share of the k nearest that are not the same: lower is better",
        "log_x": True,
        "x_label": "k",
        "y_label": "NOS@k, lower is better",
        "panels": panels,
    }


def spectrum_figure(results: Sequence[Result]) -> Spec:
    """Singular values of the map between standardised latents, for the first seed of each scene."""
    series = []
    for scene, (first, second) in first_pairs(results).items():
        met = meet(first, second)
        values = translate(met, met.a["h"], met.b["h"], ROWS).fitted.conditioning_.singular_values
        values = values[values > 0]
        series.append({"name": SCENES[scene].title, "x": list(range(1, len(values) + 1)), "y": values.tolist()})
    return {
        "kind": "curves",
        "title": "Singular values of the map: all alike for an isometry",
        "x_label": "number",
        "y_label": "singular value",
        "log_y": True,
        "series": series,
    }


def layers_figure(results: Sequence[Result]) -> list[Spec]:
    """Debiased CKA of every layer of one agent with every layer of the other, for the first seed of each scene."""
    figures = []
    for scene, (first, second) in first_pairs(results).items():
        met = meet(first, second)
        layers = [[side[name] for name in sorted(side) if name.startswith("layer")] for side in (met.a, met.b)]
        matrix = [[cka_debiased(one[:ROWS], other[:ROWS]) for other in layers[1]] for one in layers[0]]
        if matrix:
            names = [str(number + 1) for number in range(len(matrix))]
            title = f"Debiased CKA of layers: {SCENES[scene].title}"
            figures.append(
                {
                    "kind": "heatmap",
                    "title": title,
                    "matrix": matrix,
                    "x": names,
                    "y": names,
                    "x_label": "layer of the second agent",
                    "y_label": "layer of the first",
                }
            )
    return figures


def first_pairs(results: Sequence[Result]) -> dict[str, tuple[Result, Result]]:
    """Both agents of the first seed at which both finished, of each scene."""
    found = {scene: _pairs(runs) for (scene,), runs in grouped(results, "scene").items()}
    return {scene: pairs[0] for scene, pairs in found.items() if pairs}


def _pairs(results: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Both agents of each seed, where both finished."""
    finished = [result for result in results if result.status == "finished"]
    pairs = [(select(found, view=0), select(found, view=1)) for found in grouped(finished, "seed").values()]
    return [(first[0], second[0]) for first, second in pairs if first and second]
