"""Collect episodes of a world, or of any gymnasium environment, into one HDF5 file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from jepatlas.base.config import choices
from jepatlas.base.errors import InputError
from jepatlas.recipes import AnyActionWorld
from jepatlas.verbs.environments import environment_maker, said_what_is_missing
from jepatlas.verbs.options import console_for, emit, parse, progress_bar, say
from jepatlas.verbs.recipe_options import choose_recipe
from jepatlas.views import EpisodeFile, RandomPolicy, collect
from jepatlas.worlds import Rooms

FEW = 10_000  # steps, about four seconds' worth of two rooms: as long as another process takes to begin


@dataclass(frozen=True)
class Collect:
    """Collect episodes by random actions: pixels, actions and true states, in the layout of stable-worldmodel.

    Example: jepatlas collect rooms --episodes 200 --out rooms.h5

    Example: jepatlas collect Pendulum-v1 --no-pixels --length 100 --out pendulum.h5

    The first word is a world of ours (rooms, maze, reacher, linear-quadratic) or the id of any environment that
    gymnasium can make. What was interrupted goes on where it stopped, when the same is asked for again.
    """

    out: Path
    """The HDF5 file to write."""
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


CollectWorld.__doc__ = CollectEnvironment.__doc__ = Collect.__doc__


def main(words: list[str]) -> int:
    name, left = _subject(words)
    worlds = choices(AnyActionWorld)
    if name in worlds:
        left, chosen = choose_recipe(left, _Chosen(worlds[name]()))
        options = parse(CollectWorld, "collect", left, CollectWorld(Path(), world=chosen.world))
        make, fixed = options.world.make, {"goal": None}  # nothing ends an episode but its length
    else:
        options = parse(CollectEnvironment, "collect", left)
        make, fixed = environment_maker(name, options.pixels), None
    console = console_for(options.json)
    with progress_bar(console, "episodes", options.episodes) as advance, said_what_is_missing(name):
        file = collect(
            make, options.policy, options.episodes, options.length, options.seed, out=options.out,
            processes=_processes(options), options=fixed, compressed=options.compressed, tell=_Ticks(advance),
        )  # fmt: skip
    say(console, _told(file, options.out))
    columns = {column: [*found.shape] for column, found in file.columns.items()}
    emit(options.json, {"file": str(options.out), "episodes": len(file), "rows": int(file.lengths.sum()),
                        "columns": columns})  # fmt: skip
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
