"""An agent drives to goals that it has never seen: how often does it get there?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from jepatlas.base.errors import InputError
from jepatlas.base.records import Record
from jepatlas.planning import (
    DrivingConfig,
    Tasks,
    TrainedModel,
    agent_of,
    check_film,
    draw_tasks,
    drive,
    drive_at_random,
    imagined_films,
    load_world_model,
    planning_record,
    write_film,
)
from jepatlas.recipes import AnyActionWorld
from jepatlas.report import write_report
from jepatlas.verbs.options import console_for, emit, parse, say
from jepatlas.verbs.recipe_options import choices_help, choose_recipe
from jepatlas.verbs.tables import show_table
from jepatlas.worlds import FlatWorld


@dataclass(frozen=True)
class Plan:
    run: tyro.conf.Positional[Path]
    """A run folder of 'jepatlas train world-model'."""
    driving: Annotated[DrivingConfig, tyro.conf.arg(name="")] = field(default_factory=DrivingConfig)
    world: AnyActionWorld | None = None
    """Where to drive; by default the world that the run was trained on."""
    tasks: int = 50
    """Starts and goals, drawn evenly from the world."""
    start: tuple[float, ...] | None = None
    """Drive from this state only; with --goal."""
    goal: tuple[float, ...] | None = None
    """Drive to this state only."""
    film: Path | None = None
    """Write some episodes as a film to this file, .gif or .mp4."""
    seed: int = 0
    """Which tasks are drawn, and the planner's noise."""
    out: Path | None = None
    """Where the record and report.html go; by default in the run folder."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


Plan.__doc__ = f"""Drive from starts to goals by planning in the latents of a world model.

Example: jepatlas plan runs/rooms --planner cem --tasks 100 --film rooms.gif

The agent sees pixels only: those of where it is, and of the goal. Beside its success stands that of random actions.

Choices, each with options of its own (--planner mppi --help shows those of that planner):
{choices_help(DrivingConfig())}
  --world KIND drives in another world than the run was trained on, seen and moved alike."""


@dataclass(frozen=True)
class _Choices:
    """What is chosen by flags."""

    driving: DrivingConfig = field(default_factory=DrivingConfig)
    world: AnyActionWorld | None = None


def main(words: list[str]) -> int:
    words, chosen = choose_recipe(words, _Choices())
    options = parse(Plan, "plan", words, Plan(Path(), chosen.driving, chosen.world))
    if options.film is not None:
        check_film(options.film)  # before anything is driven
    model = load_world_model(options.run)
    agent, world = agent_of(model), _world(options, model)
    tasks = _tasks(options, world)
    driven = drive(world, agent, tasks, options.driving, options.seed)
    chance = drive_at_random(world, tasks, options.driving.steps, options.seed)
    about = {"run": options.run.name, "world": world.kind, "planner": options.driving.planner.kind}
    record = planning_record(
        f"Planning of {options.run.name}", world, {"the agent": driven}, chance, seed=options.seed,
        films=[imagined_films(model, agent, 3)], about=about,
    )  # fmt: skip
    place = options.out or options.run
    record.save(place, "planning")
    page = write_report([place], place / "report.html", title=record.title, seed=options.seed)
    if options.film is not None:
        _write_film(options.film, record)
    console = console_for(options.json)
    say(console, record.summary)
    show_table(console, record.tables[0])
    say(console, f"Report: {page}" + (f"\nFilm: {options.film}" if options.film else ""))
    emit(options.json, {"run": str(options.run), "report": str(page)} | record.to_json())
    return 0


def _world(options: Plan, model: TrainedModel) -> AnyActionWorld:
    world = options.world or model.world
    if world is None:
        raise InputError(f"{options.run} was trained on a file, which cannot be driven in. Name the world: --world.")
    seen, expected = world.observe(world.states(1, np.random.default_rng(0))).shape[1:], model.data.shape
    seen = (seen[2], *seen[:2]) if len(seen) == 3 else seen
    if seen != expected:
        raise InputError(
            f"The run sees observations of the shape {expected}, but the world '{world.kind}' gives {seen}. Plan in a "
            "world that is seen as the one it was trained on."
        )
    return world


def _tasks(options: Plan, world: AnyActionWorld) -> Tasks:
    if (options.start is None) != (options.goal is None):
        raise InputError("--start and --goal belong together: give both, or neither to draw tasks.")
    if options.start is None or options.goal is None:
        return draw_tasks(world, options.tasks, options.seed)
    ends = [np.array([given], dtype=np.float64) for given in (options.start, options.goal)]
    for name, place in zip(("start", "goal"), ends, strict=True):
        if place.shape[1] != world.state_dim or not world.admits(place)[0]:
            raise InputError(
                f"--{name} {place[0].tolist()} is no state of '{world.kind}': give {world.state_dim} numbers that lie "
                "inside of it and not in a wall."
            )
    _refuse_out_of_reach(world, *ends)
    return Tasks(*ends)


def _refuse_out_of_reach(world: AnyActionWorld, start: np.ndarray, goal: np.ndarray) -> None:
    if isinstance(world, FlatWorld) and world.current is None and np.isinf(world.distance_to(goal[0], start)[0]):
        raise InputError(
            f"The goal {goal[0].tolist()} cannot be reached from {start[0].tolist()}: the energy is +∞, because a "
            "one-way door is in between and there is no way round. Choose another start or goal."
        )


def _write_film(path: Path, record: Record) -> None:
    numbers = [name.removeprefix("driven-") for name in record.arrays if name.startswith("driven-")]
    write_film(path, *([record.arrays[f"{what}-{number}"] for number in numbers] for what in ("driven", "goal")))
