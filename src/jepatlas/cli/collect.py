"""Collect episodes of a world, or of any gymnasium environment, into one HDF5 file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from jepatlas.cli.environments import environment_maker, said_what_is_missing
from jepatlas.cli.options import console_for, emit, parse, progress_bar, say
from jepatlas.cli.recipe_options import choices_help, choose_recipe
from jepatlas.core.config import choices, to_plain
from jepatlas.core.errors import InputError
from jepatlas.data import EpisodeFile, RandomPolicy, collect
from jepatlas.recipes import AnyActionWorld
from jepatlas.worlds import LinearQuadratic, Rooms

FEW = 10_000  # steps, about four seconds' worth of two rooms: as long as another process takes to begin


@dataclass(frozen=True)
class Collect:
    out: Path
    """The HDF5 file to write; by default it is called as what is collected."""
    policy: RandomPolicy = field(default_factory=lambda: RandomPolicy(persistence=0.8))
    episodes: int = 500
    """How many."""
    length: int = 64
    """Steps of each, at most; an environment may end one sooner."""
    processes: int | None = None
    """Processes that collect: by default 2, and for less than 10,000 steps this one alone, because to begin others
    takes longer. The file is the same for any number of them."""
    compressed: bool = True
    """Whether what is written is compressed: smaller for drawn worlds, and a little slower to read."""
    seed: int = 0
    """From which every episode is derived."""
    json: str | None = None
    """Write what was collected as JSON to this file (- for standard output)."""


@dataclass(frozen=True)
class CollectEnvironment(Collect):
    pixels: bool = True
    """Draw every moment; otherwise only what the environment gives is kept."""


@dataclass(frozen=True)
class CollectWorld(Collect):
    world: AnyActionWorld = field(default_factory=Rooms)


CollectWorld.__doc__ = f"""Collect episodes by random actions: one file, in the layout of stable-worldmodel.

Example: jepatlas collect rooms --episodes 200 --out rooms.h5

Example: jepatlas collect Pendulum-v1 --no-pixels --length 100 --out pendulum.h5

The first word is a world of ours (rooms, maze, reacher, linear-quadratic) or the id of any environment that gymnasium
can make. Pixels, actions and true states are written, and what they are of. What was interrupted goes on where it
stopped, when the same is asked for again.

Choices, each with options of its own (collect rooms --current jet --help shows those of that current):
{choices_help(Rooms())} (rooms, maze): what carries the agent along
{choices_help(LinearQuadratic())} (linear-quadratic): through what states are seen"""
CollectEnvironment.__doc__ = CollectWorld.__doc__


def main(words: list[str]) -> int:
    name, left = _subject(words)
    worlds = choices(AnyActionWorld)
    if name in worlds:
        left, chosen = choose_recipe(left, _Chosen(worlds[name]()))
        _refuse_motion(left)
        default = CollectWorld(Path(f"{chosen.world.kind}.h5"), world=chosen.world)
        options = parse(CollectWorld, "collect", left, default)
        make, fixed = options.world.make, {"goal": None}  # nothing ends an episode but its length
        about = {"world": to_plain(options.world)}
    else:
        called = Path(f"{re.sub(r'[^A-Za-z0-9._-]', '-', name)}.h5")
        options = parse(CollectEnvironment, "collect", left, CollectEnvironment(called))
        make, fixed, about = environment_maker(name, options.pixels), None, {"environment": name}
    console = console_for(options.json)
    with progress_bar(console, "episodes", options.episodes) as advance, said_what_is_missing(name):
        file = collect(
            make,
            options.policy,
            options.episodes,
            options.length,
            options.seed,
            out=options.out,
            processes=_processes(options),
            options=fixed,
            compressed=options.compressed,
            progress=_Ticks(advance),
            about=about | {"policy": to_plain(options.policy)},
        )
    say(console, _told(file, options.out))
    columns = {column: [*found.shape] for column, found in file.columns.items()}
    emit(
        options.json,
        {"file": str(options.out), "episodes": len(file), "rows": int(file.lengths.sum()), "columns": columns},
    )
    return 0


@dataclass(frozen=True)
class _Chosen:
    """A world whose kinds of current and the like can be chosen by flags."""

    world: AnyActionWorld


def _subject(words: list[str]) -> tuple[str, list[str]]:
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    if {"-h", "--help"} & set(words):
        return Rooms.kind, words
    raise InputError(f"name a world ({', '.join(choices(AnyActionWorld))}) or the id of a gymnasium environment first.")


def _refuse_motion(words: list[str]) -> None:
    """Reacher's own motions have no actions, which a file of episodes needs."""
    if any(word.split("=")[0].startswith("--motion") for word in words):
        raise InputError(
            "--motion belongs to 'jepatlas train world-model reacher --model frames --motion scripted', which walks "
            "the world by itself: such motions have no actions. 'collect' acts at random: leave --motion out."
        )


def _processes(options: Collect) -> int:
    if options.processes is not None:
        return options.processes
    return 1 if options.episodes * options.length < FEW else 2


class _Ticks:
    """From how many are done to one tick of the bar for each."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.advance, self.shown = advance, 0

    def __call__(self, done: int, episodes: int) -> None:
        for _ in range(done - self.shown):
            self.advance()
        self.shown = done


def _told(file: EpisodeFile, out: Path) -> str:
    columns = ", ".join(f"{name} {found.shape}" if found.shape else name for name, found in file.columns.items())
    return (
        f"{len(file)} episodes, {int(file.lengths.sum())} moments: {out}\nColumns: {columns}\n"
        f"Next: jepatlas train world-model {quote(str(out))}"
    )
