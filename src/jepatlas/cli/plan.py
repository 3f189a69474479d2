"""Plan with a trained world model: drive to goals and measure the success rate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.cli.tables import show_table
from jepatlas.core.config import choices
from jepatlas.core.errors import InputError
from jepatlas.planning import LQRConfig
from jepatlas.recipes import AnyActionWorld
from jepatlas.reporting import write_report
from jepatlas.workflows.plan import (
    DrivingConfig,
    Tasks,
    agent_of,
    check_film,
    check_reachable,
    draw_tasks,
    drive,
    drive_at_random,
    film_rows,
    imagined_films,
    load_world_model,
    place_of,
    planning_record,
    write_film,
)
from jepatlas.worlds import AnyCurrent


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
    """Write some episodes, and below them what was imagined, as a film to this file, .gif or .mp4."""
    seed: int = 0
    """Which tasks are drawn, and the planner's noise."""
    out: Path | None = None
    """Where the record and report.html go; by default in the run folder."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


Plan.__doc__ = f"""Drive from starts to goals by planning in the latents of a world model.

Example: jepatlas plan runs/rooms --planner cem --tasks 100 --film rooms.gif

The agent sees pixels only: those of where it is, and of the goal. Beside its success stands that of random actions,
those by which the run explored where that is known.

Choices, each with options of its own (--planner mppi --help shows those of that planner):
{choices_help(DrivingConfig())}
  --world KIND plans in another world with the same observations and actions; differences are reported.
  --current {{{",".join(choices(AnyCurrent))},none}} of that world: what carries the agent along."""


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
    place = place_of(model, options.world, str(options.run))
    world = place.world
    if options.film is not None:
        check_film(options.film, world)
    tasks, warning = _tasks(options, world)
    agent = agent_of(model, options.driving.planner)
    driven = drive(world, agent, tasks, options.driving, options.seed)
    chance = drive_at_random(world, tasks, options.driving.steps, options.seed, model.explored)
    about = {"run": options.run.name, "world": world.kind, "planner": options.driving.planner.kind}
    record = planning_record(
        f"Planning of {options.run.name}",
        world,
        {"the agent": driven},
        chance,
        seed=options.seed,
        agent=agent,
        explored=model.explored,
        films=[imagined_films(model, agent, 3)],
        about=about,
    )
    record = replace(record, summary=" ".join(filter(None, [record.summary, place.note, warning, _rest(options)])))
    folder = options.out or options.run
    record.save(folder, "planning")
    page = write_report([folder], folder / "report.html", title=record.title, seed=options.seed)
    if options.film is not None:
        write_film(options.film, *film_rows(record.arrays))
    console = console_for(options.json)
    say(console, record.summary)
    show_table(console, record.tables[0])
    say(console, f"Report: {page}" + (f"\nFilm: {options.film}" if options.film else ""))
    emit(options.json, {"run": str(options.run), "report": str(page)} | record.to_json())
    return 0


def _rest(options: Plan) -> str:
    planner = options.driving.planner
    if not isinstance(planner, LQRConfig) or not planner.infinite:
        return ""
    return "For ever, LQR leads to the latent nearest to the goal's, by least squares, at which an action holds it."


def _tasks(options: Plan, world: AnyActionWorld) -> tuple[Tasks, str]:
    """The requested tasks, and a warning about them or an empty string."""
    if (options.start is None) != (options.goal is None):
        raise InputError("--start and --goal belong together: give both, or neither to draw tasks.")
    if options.start is None or options.goal is None:
        return draw_tasks(world, options.tasks, options.seed), ""
    ends = [np.array([given], dtype=np.float64) for given in (options.start, options.goal)]
    for name, place in zip(("start", "goal"), ends, strict=True):
        if place.shape[1] != world.state_dim or not world.admits(place)[0]:
            raise InputError(
                f"--{name} {place[0].tolist()} is no state of '{world.kind}': give {world.state_dim} numbers that lie "
                "inside of it and not in a wall."
            )
    return Tasks(*ends), check_reachable(world, *ends)
