"""Carry a planner from one camera to another, through the map between two models, with no training."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from jepatlas.cli.migrate.models import keep
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.tables import show_table
from jepatlas.core.errors import InputError
from jepatlas.workflows.align import MapKind
from jepatlas.workflows.plan import DrivingConfig, load_world_model, port_planner


@dataclass(frozen=True)
class Planner:
    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Two run folders of 'jepatlas train world-model': A, whose planner is carried, and B, through whose camera it is
    to drive. Their worlds must be the same but for the camera."""
    driving: Annotated[DrivingConfig, tyro.conf.arg(name="")] = field(default_factory=DrivingConfig)
    fit: MapKind = "ridge"
    """How the map from B's latents to A's is fitted."""
    states: int = 1000
    """States of the world that both are shown, for the map."""
    tasks: int = 50
    """Starts and goals, drawn evenly from the world."""
    seed: int = 0
    """Which states and tasks are drawn, and the planner's noise."""
    out: Path = Path("runs/migrate-planner")
    """Where map.safetensors, the record and report.html go."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


Planner.__doc__ = f"""Drive B's camera by A's planner, its dynamics and its energy, through the map B → A.

Example: jepatlas migrate planner runs/day runs/night --states 500

Nothing is trained. The map is fitted on latents of states that both are shown, and scored on others. Beside the ported
planner stand B's own, the same through a map between shuffled pairs, and random actions, all on the same tasks.

Choices, each with options of its own (--planner mppi --help shows those of that planner):
{choices_help(DrivingConfig())}"""


@dataclass(frozen=True)
class _Choices:
    """What is chosen by flags."""

    driving: DrivingConfig = field(default_factory=DrivingConfig)


def main(words: list[str]) -> int:
    words, chosen = choose_recipe(words, _Choices())
    options = parse(Planner, "migrate planner", words, Planner((), chosen.driving))
    if len(options.runs) != 2:
        raise InputError(f"give the run folders of both models, A and B, but {len(options.runs)} given.")
    a, b = map(load_world_model, options.runs)
    through, record = port_planner(
        a,
        b,
        kind=options.fit,
        states=options.states,
        tasks=options.tasks,
        driving=options.driving,
        names=(options.runs[0].name, options.runs[1].name),
        seed=options.seed,
    )
    page = keep(record, through, options.out, options.seed)
    console = console_for(options.json)
    say(console, record.summary)
    show_table(console, record.tables[0])
    score = next(verdict for verdict in record.verdicts if verdict.name == "map_r2")
    say(console, f"R² of the map, on other states than the {options.states} shared ones: {score.value:.3f}")
    say(console, f"Map: {options.out / 'map.safetensors'}\nReport: {page}")
    emit(options.json, {"map": str(options.out / "map.safetensors"), "report": str(page)} | record.to_json())
    return 0
