"""`jepatlas plan`: drive to goals by planning in the latents of a world model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import tyro

from jepatlas.cli.options import parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, say, show_table
from jepatlas.core.errors import InputError
from jepatlas.planning import LQRConfig
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.plan import DrivingConfig

if TYPE_CHECKING:
    from jepatlas.workflows.plan import Tasks

LQR_NOTE = (
    "With an infinite horizon, LQR steers to the latent nearest to the goal's, by least squares, at which an action "
    "can hold it."
)


@dataclass(frozen=True)
class Plan:
    """Drive from starts to goals by planning in the latents of a world model, and measure the success rate.

    Example: jepatlas plan runs/rooms --planner cem --tasks 100 --film rooms.gif

    The agent sees only observations: those of its state, and that of the goal. Its success is compared with that of
    random actions, drawn by the policy of the training episodes if it is known.

    Each kind has its own options: --planner mppi --help shows those of that planner. --world KIND plans in another
    world with the same observations and actions, and reports the differences; --current KIND sets its current.
    """

    run: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="PATH")] = None
    """A run folder of 'jepatlas train world-model'."""
    driving: Annotated[DrivingConfig, tyro.conf.arg(name="")] = field(default_factory=DrivingConfig)
    world: AnyActionWorld | None = None
    """Where to drive. By default in the world of the run."""
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
        from jepatlas.reporting import write_report
        from jepatlas.workflows.plan import (
            agent_of,
            check_film,
            drive,
            drive_at_random,
            film_rows,
            imagined_films,
            load_world_model,
            place_of,
            planning_record,
            write_film,
        )

    if options.film is not None:
        check_film(options.film)
    model = load_world_model(options.run)
    place = place_of(model, options.world, str(options.run))
    world = place.world
    if options.film is not None:
        check_film(options.film, world)
    tasks, warning = _tasks(options, world)
    planner = options.driving.planner
    agent = agent_of(model, planner)
    driven = drive(world, agent, tasks, options.driving, options.seed)
    chance = drive_at_random(world, tasks, options.driving.steps, options.seed, model.explored)
    record = planning_record(
        f"Planning of {options.run.name}",
        world,
        {"the agent": driven},
        chance,
        seed=options.seed,
        agent=agent,
        explored=model.explored,
        films=[imagined_films(model, agent, 3)],
        about={"run": options.run.name, "world": world.kind, "planner": planner.kind},
    )
    notes = [record.summary, place.note, warning]
    if isinstance(planner, LQRConfig) and planner.infinite:
        notes.append(LQR_NOTE)
    record = replace(record, summary=" ".join(note for note in notes if note))
    folder = options.out or options.run
    record.save(folder, "planning")
    page = write_report([folder], folder / "report.html", title=record.title, seed=options.seed)
    if options.film is not None:
        write_film(options.film, *film_rows(record.arrays))
    console = console_for(options.json)
    say(console, record.summary)
    show_table(console, record.tables[0])
    say(console, f"Report: {page}")
    if options.film is not None:
        say(console, f"Film: {options.film}")
    emit(options.json, {"run": str(options.run), "report": str(page)} | record.to_json())
    return 0


def _tasks(options: Plan, world: AnyActionWorld) -> tuple[Tasks, str]:
    """The requested tasks, and a warning about them or an empty string."""
    from jepatlas.workflows.plan import Tasks, check_reachable, draw_tasks

    if options.start is None and options.goal is None:
        return draw_tasks(world, options.tasks, options.seed), ""
    if options.start is None or options.goal is None:
        raise InputError("--start and --goal belong together: give both, or neither to draw tasks.")
    start = _state(world, "start", options.start)
    goal = _state(world, "goal", options.goal)
    return Tasks(start, goal), check_reachable(world, start, goal)


def _state(world: AnyActionWorld, name: str, given: tuple[float, ...]) -> np.ndarray:
    state = np.array([given], dtype=np.float64)
    if state.shape[1] != world.state_dim or not world.admits(state)[0]:
        raise InputError(
            f"--{name} {state[0].tolist()} is not a state of '{world.kind}': give {world.state_dim} numbers, inside "
            "the world and not in a wall."
        )
    return state
