"""The exact energies of a world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import tyro

from jepatlas.cli.energy.shown import show
from jepatlas.cli.options import console_for, emit, parse, say
from jepatlas.cli.recipe_options import choose_recipe
from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import choices, from_plain
from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.recipes import EnergyWorld
from jepatlas.reporting.paper import paper_figure
from jepatlas.workflows.energy import exact_record
from jepatlas.worlds import CurrentWorld, GymTable, OneWayGrid

WORLDS = choices(EnergyWorld)


@dataclass(frozen=True)
class Exact:
    """Compute what it takes to go from every state to every other: +∞ where there is no way.

    Example: jepatlas energy exact one-way-grid

    Example: jepatlas energy exact current --current constant --world.current.along 0.9 --goal 0.5 0

    Worlds: one-way-grid, gym (any deterministic gymnasium environment with finitely many states) and current, with
    --current {constant,shear,jet,vortex}. Grids and tables go through Dijkstra's algorithm, currents through an
    asymmetric eikonal solver, held against closed form or shooting where there is one.
    """

    world: Annotated[EnergyWorld, tyro.conf.arg(name="world")] = OneWayGrid()  # noqa: RUF009 (frozen)
    goal: tuple[float, ...] | None = None
    """A cell (row and column), a state's number, or a point of the plane; where not given, a telling one."""
    resolution: int = 201
    """Nodes along each side of the box, for currents."""
    full: bool = False
    """Show every number, not only those with a threshold."""
    seed: int = 0
    """Which states are audited, and where errors are measured."""
    out: Path | None = None
    """The folder for the record, energies.npz and a picture; by default runs/exact-WORLD, for a current
    runs/exact-current-CURRENT, for gym runs/exact-gym-ENV."""
    json: str | None = None
    """Write the record as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class _Choice:
    """For the choices that a world offers, such as --current."""

    world: EnergyWorld


def main(words: list[str]) -> int:
    asked = any(word in ("-h", "--help") for word in words)
    if not words or words[0].startswith("-"):
        if not asked:
            raise InputError(f"Name the world first: {', '.join(WORLDS)}. Example: jepatlas energy exact one-way-grid")
        words = [OneWayGrid.kind, *words]
    if words[0] not in WORLDS:
        raise InputError(f"there is no world '{words[0]}'. {did_you_mean(words[0], WORLDS)}")
    left, chosen = choose_recipe(words[1:], _Choice(from_plain(WORLDS[words[0]], {})))
    options = parse(Exact, "energy exact", left, Exact(chosen.world))
    console = console_for(options.json)
    record = exact_record(options.world, goal=options.goal, resolution=options.resolution, seed=options.seed)
    folder = options.out or _default_folder(options.world)
    record.save(folder, "exact")
    write_arrays(folder / "energies.npz", record.arrays)
    paper_figure(record.figures, record.arrays, folder / "energies.png", record.title)
    show(console, record, full=options.full)
    if isinstance(options.world, OneWayGrid) and options.world.width <= 40:
        say(console, options.world.draw())
    say(console, f"Kept in {folder}: energies.npz, energies.png. A page: jepatlas report {quote(str(folder))}")
    emit(options.json, {"world": options.world.kind} | record.to_json())
    return 0


def _default_folder(world: EnergyWorld) -> Path:
    """One for each current and each environment, so that none writes over another."""
    if isinstance(world, CurrentWorld):
        return Path("runs") / f"exact-{world.kind}-{world.current.kind}"
    if isinstance(world, GymTable):
        return Path("runs") / f"exact-{world.kind}-{world.env.replace('/', '-')}"
    return Path("runs") / f"exact-{world.kind}"
