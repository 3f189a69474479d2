"""One question asked in several scenes, and the answers made one finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jepatlas.core.figures import Figure, Table, as_figure, as_table
from jepatlas.experiments.engine.experiment import Finding, Result, combined
from jepatlas.experiments.engine.seed_tables import grouped
from jepatlas.experiments.social.scenes import SCENES

__all__ = ["by_scene"]


def by_scene(results: Sequence[Result], judge: Callable[[Sequence[Result]], Finding]) -> Finding:
    """What `judge` says of each scene in which a trial finished: it holds where it does in all, and in part where it
    does in one. In a few words, the first that is decided is given, or else the first."""
    scenes = {
        scene: judge(runs)
        for (scene,), runs in grouped(results, "scene").items()
        if any(run.status == "finished" for run in runs)
    }
    decided = [scene for scene, found in scenes.items() if found.outcome != "undecided"]
    shown = decided[0] if decided else next(iter(scenes))
    return Finding(
        combined([found.outcome for found in scenes.values()]),
        " ".join(f"{SCENES[scene].title.capitalize()}: {found.sentence}" for scene, found in scenes.items()),
        short=f"{shown}: {scenes[shown].short}",
        verdicts=tuple(
            replace(verdict, name=f"{verdict.name}_{scene}")
            for scene, found in scenes.items()
            for verdict in found.verdicts
        ),
        figures=tuple(_titled_figure(scene, figure) for scene, found in scenes.items() for figure in found.figures),
        tables=tuple(_titled_table(scene, table) for scene, found in scenes.items() for table in found.tables),
    )


def _titled_figure(scene: str, spec: Figure | Mapping[str, Any]) -> Figure:
    """The figure with the scene in its title and in those of its panels: printed figures show only the latter."""
    figure = as_figure(spec)
    titled = replace(figure, title=_title(scene, figure.title))
    if panels := getattr(figure, "panels", None):
        named = [replace(panel, title=f"{scene}: {panel.title}") for panel in panels]
        return replace(titled, panels=named)  # pyright: ignore[reportCallIssue]
    return titled


def _titled_table(scene: str, spec: Table | Mapping[str, Any]) -> Table:
    table = as_table(spec)
    return replace(table, title=_title(scene, table.title))


def _title(scene: str, title: str) -> str:
    return f"{SCENES[scene].title.capitalize()}. {title}"
