"""`jepatlas collect`: write episodes of a world, or of any gymnasium environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from jepatlas.cli.options import mentions, parse_choices
from jepatlas.cli.output import console_for, defer_interrupts, emit, progress_bar, say
from jepatlas.core.config import choices, to_plain
from jepatlas.core.errors import InputError
from jepatlas.data import RandomPolicy
from jepatlas.recipes import AnyActionWorld

if TYPE_CHECKING:
    from jepatlas.data import EpisodeArrays, EpisodeFile

FEW = 10_000  # steps: one process collects them in the time that another one needs to start


@dataclass(frozen=True)
class Collect:
    """Collect episodes by random actions, in the file layout of stable-worldmodel or as a Minari dataset.

    Example: jepatlas collect rooms --episodes 200 --out rooms.h5

    Example: jepatlas collect Pendulum-v1 --no-pixels --length 100 --out pendulum.h5

    Example: jepatlas collect maze --format minari --out maze-random-v0

    Pixels, actions and true states are written. To continue an interrupted collection, repeat the command.

    Each kind has its own options: collect rooms --current jet --help shows those of that current, which carries the
    agent along; collect linear-quadratic --mixing lift --help those of that map from states to observations.
    """

    subject: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="NAME")] = None
    """A world (rooms, maze, reacher, linear-quadratic), or the id of a gymnasium environment. For module:ID, the
    module is imported first, also from the working directory."""
    world: AnyActionWorld | None = None
    """Settings of the world."""
    pixels: bool = True
    """Render every frame of an environment. Otherwise only its own observations are written. Worlds are always
    rendered."""
    policy: RandomPolicy = field(default_factory=lambda: RandomPolicy(persistence=0.8))
    episodes: int = 500
    """Number of episodes."""
    length: int = 64
    """Maximal number of steps of each episode."""
    processes: int | None = None
    """Number of processes; by default 2, or 1 for less than 10,000 steps. It does not change the file."""
    compressed: bool = True
    """Compress the file: smaller for rendered worlds, and slightly slower to read."""
    seed: int = 0
    """Seed of all episodes."""
    format: Literal["hdf5", "minari"] = "hdf5"
    """One HDF5 file, or the folder of a dataset that Minari loads."""
    out: Path | None = None
    """The HDF5 file, by default NAME.h5; or the folder of the dataset, by default NAME-v0."""
    json: str | None = None
    """Write a summary as JSON to this file (- for standard output)."""


def main(args: list[str]) -> int:
    if mentions(args, "motion"):  # an option of `train world-model`
        raise InputError(
            "collect takes random actions, and the trajectories of --motion have no actions. Leave --motion out, or "
            "train on them directly: jepatlas train world-model reacher --model frames --motion scripted"
        )
    options = parse_choices(Collect(), "collect", args, _with_world)
    name = options.subject or (options.world.kind if options.world else None)
    if name is None:
        worlds = ", ".join(choices(AnyActionWorld))
        raise InputError(f"name a world ({worlds}) or the id of a gymnasium environment first.")
    make: Callable[[], Any]
    if options.world is not None:
        make = options.world.make
        reset_options = {"goal": None}  # so that episodes end only by their length
        about = {"world": to_plain(options.world)}
    else:
        from jepatlas.workflows.plan.environment_drive import environment_maker

        make = environment_maker(name, options.pixels)
        reset_options = None
        about = {"environment": name}
    place = _out(options, name)
    console = console_for(options.json)
    described = about | {"policy": to_plain(options.policy)}
    if options.format == "minari":
        file = _collect_minari(options, place, make, reset_options, described)
    else:
        was_complete = place.exists()
        file = _collect(options, place, make, reset_options, described)
        if was_complete:
            say(console, f"{place} is already complete; nothing was collected.")
    say(console, _summary(file, place))
    columns = {column: [*found.shape] for column, found in file.columns.items()}
    emit(
        options.json,
        {"file": str(place), "episodes": len(file), "rows": int(file.lengths.sum()), "columns": columns},
    )
    return 0


def _with_world(word: str, options: Collect) -> Collect:
    """The options for a world; those for an environment are the defaults."""
    worlds = choices(AnyActionWorld)
    return replace(options, world=worlds[word](), out=Path(f"{word}.h5")) if word in worlds else options


def _out(options: Collect, name: str) -> Path:
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    file = Path(f"{plain}.h5")
    if options.format == "hdf5":
        return options.out or file
    folder = Path(plain if re.search(r"-v\d+$", plain) else f"{plain}-v0")
    return folder if options.out in (None, file) else options.out


def _collect_minari(
    options: Collect,
    folder: Path,
    make: Callable[[], Any],
    reset_options: dict[str, Any] | None,
    about: dict[str, Any],
) -> EpisodeFile | EpisodeArrays:
    """Collect to a hidden file beside the folder, so that an interrupted collection goes on, then rewrite it."""
    from jepatlas.core.errors import require
    from jepatlas.data import EpisodeFile, open_episodes, write_minari

    require("minari", "interop", "Writing a Minari dataset")
    if folder.exists():
        raise InputError(f"{folder} exists already. Delete it or choose another folder.")
    hidden = folder.with_name(f".{folder.name}.h5")
    if not hidden.with_name(f"{hidden.name}.parts").exists():
        hidden.unlink(missing_ok=True)  # left by a command that was killed while it rewrote
    _collect(options, hidden, make, reset_options, about)
    with EpisodeFile(hidden) as file:
        write_minari(file, folder)
    hidden.unlink()
    return open_episodes(folder)


def _collect(
    options: Collect,
    place: Path,
    make: Callable[[], Any],
    reset_options: dict[str, Any] | None,
    about: dict[str, Any],
) -> EpisodeFile:
    with defer_interrupts():
        import gymnasium

        from jepatlas.data import collect

    processes = options.processes
    if processes is None:
        processes = 1 if options.episodes * options.length < FEW else 2
    with progress_bar(console_for(options.json), "episodes", options.episodes) as advance:
        shown = 0

        def progress(done: int, episodes: int) -> None:
            nonlocal shown
            for _ in range(done - shown):
                advance()
            shown = done

        try:
            return collect(
                make,
                options.policy,
                options.episodes,
                options.length,
                options.seed,
                out=place,
                processes=processes,
                options=reset_options,
                compressed=options.compressed,
                progress=progress,
                about=about,
            )
        except gymnasium.error.DependencyNotInstalled as error:  # found when the first frame is rendered
            raise InputError(
                f"'{options.subject or place.stem}' cannot be rendered: {error}. Or leave out pixels: --no-pixels."
            ) from error


def _summary(file: EpisodeFile | EpisodeArrays, out: Path) -> str:
    columns = ", ".join(f"{name} {found.shape}" if found.shape else name for name, found in file.columns.items())
    return (
        f"{len(file)} episodes, {int(file.lengths.sum())} frames: {out}\nColumns: {columns}\n"
        f"Next: jepatlas train world-model {quote(str(out))}"
    )
