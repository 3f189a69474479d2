"""`jepatlas plan`: drive to goals by planning in the latents of a world model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from jepatlas.cli.options import parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_table
from jepatlas.core.errors import InputError
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.plan import DrivingConfig


@dataclass(frozen=True)
class Plan:
    """Drive from starts to goals by planning in the latents of a world model, and measure the success rate.

    Example: jepatlas plan runs/rooms --planner cem --tasks 100 --film rooms.gif

    The agent sees only observations: those of its state, and that of the goal. Its success is compared with that of
    random actions, drawn by the policy of the training episodes if it is known.

    Example: jepatlas plan runs/dot --environment my_env:Dot-v0

    In a gymnasium environment, goals are observations of random episodes from the same starts. They are reached within
    a tenth of their distance from the start.

    Each kind has its own options: --planner mppi --help shows those of that planner. --world KIND plans in another
    world with the same observations and actions, and reports the differences; --current KIND sets its current.
    """

    most_used: ClassVar[str] = "planner world environment tasks steps film start goal seed out"

    run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="PATH")] = None
    """A run folder of 'jepatlas train world-model'."""
    driving: Annotated[DrivingConfig, tyro.conf.arg(name="")] = field(default_factory=DrivingConfig)
    world: AnyActionWorld | None = None
    """Where to drive. By default in the world of the run."""
    environment: str | None = None
    """Drive in this gymnasium environment; by default in that of the run's episodes. my_env:Dot-v0 imports my_env."""
    tasks: int = 50
    """Number of tasks: starts and goals, drawn uniformly from the world."""
    start: tuple[float, ...] | None = None
    """Drive only from this state; requires --goal."""
    goal: tuple[float, ...] | None = None
    """Drive only to this state; requires --start."""
    film: Path | None = None
    """Write some episodes, with the imagined frames below them, as a film to this file, .gif or .mp4."""
    seed: int = 0
    """Seed of the tasks and of the planner."""
    out: Path | None = None
    """Folder for the record and report.html; by default the run folder."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    options = parse_choices(Plan(), "plan", args)
    if options.run is None:
        raise InputError("name the run folder of a world model. Example: jepatlas plan runs/rooms")
    with defer_interrupts():
        from jepatlas.api.run_functions import drive
        from jepatlas.reporting import write_report

    console = console_for(options.json)
    planning = drive(
        options.run,
        tasks=options.tasks,
        start=options.start,
        goal=options.goal,
        config=options.driving,
        world=options.world,
        environment=options.environment,
        film=options.film,
        seed=options.seed,
    )
    record = planning.record
    folder = planning.save(options.out or options.run)
    page = write_report([folder], folder / "report.html", title=record.title, seed=options.seed)
    say(console, record.summary)
    show_table(console, record.tables[0])
    say(console, f"Report: {page}")
    if options.film is not None:
        say(console, f"Film: {options.film}")
    emit(options.json, {"run": str(options.run), "report": str(page)} | record.to_json())
    return 0
