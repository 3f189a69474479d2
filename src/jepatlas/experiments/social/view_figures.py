"""Figures and tables of `social-views`: scores, controls, neighbourhoods, spectra and layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jepatlas.alignment.similarity import NEIGHBOURS, cka_debiased
from jepatlas.core.figures import Bars, Curve, CurvePanel, Curves, Heatmap, Table
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.run_tables import number, run_table
from jepatlas.experiments.engine.seed_tables import curve, extremes, mean_and_range, spread
from jepatlas.experiments.social.agent_pairs import (
    COMPARED,
    NAMES,
    held_out_layers,
    measure_key,
    pair_latents,
    split_of,
)
from jepatlas.experiments.social.pair_figures import OVER_SEEDS, r2_figure
from jepatlas.experiments.social.pair_measures import translate
from jepatlas.experiments.social.scenes import SCENES, Scene
from jepatlas.experiments.social.view_samples import first_pairs

__all__ = [
    "controls_figure",
    "controls_table",
    "layers_figure",
    "neighbours_figure",
    "neighbours_table",
    "scores_table",
    "spectrum_figure",
]

Scenes = Mapping[str, Sequence[Result]]
MAX_ROWS = 300
MARGINS = {"beyond": "R²", "beyond_raw": "R², raw latents", "beyond_dsc": "DSC", "beyond_nos_10": "NOS@10"}
MEASURES = {
    "r2": "R², standardised",
    "r2_raw": "R², raw latents",
    "dsc": "DSC",
    "nos_10": "NOS@10",
    "dsc_there": "DSC, no inverse",
    "nos_10_there": "NOS@10, no inverse",
}


def scores_table(pairs: Sequence[Result]) -> Table:
    """One row per pair of agents, unfinished ones included."""
    measured = {
        "R²": "r2",
        "R², raw latents": "r2_raw",
        "DSC": "dsc",
        "NOS@10": "nos_10",
        **{f"{title} beyond the best control": key for key, title in MARGINS.items()},
        "R² beyond PCA of the first view": "beyond_pixels",
        "p": number("p_r2", ".2f"),
        "CKA": number("cka"),
        "κ(W)": number("kappa", ".1f"),
        "orthogonality error, whitened": number("orthogonality", ".2f"),
        "directions": number("directions", ".1f"),
        "loss": number("loss"),
    }
    places = {"scene": lambda pair: SCENES[pair.at["scene"]].title, "seed": "seed"}
    return run_table("Held-out states, with 95% intervals by groups", pairs, places, measured, status="agents")


def controls_table(scenes: Scenes) -> Table:
    """Agents and controls, between standardised latents and between raw latents."""
    rows = []
    for scene, runs in scenes.items():
        for name in NAMES:
            cells = [extremes(mean_and_range(runs, measure_key(measure, name))) for measure in MEASURES]
            rows.append([SCENES[scene].title, NAMES[name], *cells])
    for scene in _published_settings(scenes):
        r2, dsc, nos = map(str, scene.published)
        rows.append([scene.setting, "published", r2, "–", dsc, nos, "–", "–"])
    title = "Agents and controls: means over seeds (lowest to highest); for NOS, lower is better"
    return Table(title, ["scene", "of", *MEASURES.values()], rows)


def _published_settings(scenes: Iterable[str]) -> list[Scene]:
    """One scene for each published setting."""
    return list({SCENES[scene].setting: SCENES[scene] for scene in scenes}.values())


def controls_figure(scenes: Scenes) -> Bars:
    return r2_figure(
        "Held-out R² of trained agents and controls",
        scenes,
        published=[SCENES[scene].published[0] for scene in scenes],
        note=f"Between standardised latents. {OVER_SEEDS}; dashes: published for the nearest setting.",
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
    for scene, (first, second) in first_pairs(results).items():
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
    for scene, (first, second) in first_pairs(results).items():
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
