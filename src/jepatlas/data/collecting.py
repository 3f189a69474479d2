"""Collecting episodes from a gymnasium environment, in parallel processes; can be stopped and taken up again.

Episodes are collected in shards of a few, each a file that is whole or absent, in the folder `OUT.parts`. Asked again,
only the shards that are missing are collected. At the end they are put together in `OUT` and the folder goes. Which
episodes a shard has depends on neither the number of processes nor what was there before, and an episode only on (seed,
its number): so the file is the same, bit for bit, however it came about.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jepatlas
from jepatlas.core.errors import InputError
from jepatlas.core.files import finite, read_json, write_json
from jepatlas.data.collection import Collection
from jepatlas.data.described import described
from jepatlas.data.episode_writer import EpisodeWriter
from jepatlas.data.episodes import EpisodeFile
from jepatlas.data.policies import Policy, RemembersAnEpisode
from jepatlas.data.rollouts import check_actions, roll_out
from jepatlas.data.workers import carry_out, stop_if_asked

__all__ = ["collect"]

Tell = Callable[[int, int], None]
"""Called with how many episodes are done, and how many there will be."""


def collect(
    make: Callable[[], Any],
    policy: Policy | RemembersAnEpisode,
    episodes: int,
    length: int,
    seed: int,
    *,
    out: Path | str,
    processes: int = 1,
    options: dict[str, Any] | None = None,
    shard: int = 16,
    compressed: bool = True,
    about: Mapping[str, Any] | None = None,
    tell: Tell = lambda done, episodes: None,
) -> EpisodeFile:
    """Write `episodes` episodes of at most `length` steps to the file `out`.

    `make` makes the environment (render_mode="rgb_array" for pixels) and is called in each process, so it and the
    policy must be picklable where there are several; `options` go to every reset; a `shard` of episodes is what an
    interruption can lose in each process. What is known of where they come from (`about`: the world, the id of an
    environment) is kept in the file, with the policy, the seed and our version. `tell(done, episodes)` is called as
    shards are done, at first with what was there already.
    """
    out = Path(out)
    if out.exists():
        raise InputError(f"{out} exists already. Delete it, or choose another name for the episodes.")
    work = Collection(make, policy, episodes, length, seed, shard, options, compressed)
    parts = out.with_name(f"{out.name}.parts")
    _take_up(parts, work)
    try:
        _collect_missing(work, parts, processes, tell)
    finally:
        if not any(parts.glob("shard-*.h5")):  # nothing that could be taken up again
            shutil.rmtree(parts)
    origin = {"version": jepatlas.__version__, "seed": seed, "policy": described(policy), **(about or {})}
    _put_together([work.place(parts, number) for number in work.shards], EpisodeWriter(out, compressed, about=origin))
    shutil.rmtree(parts)
    return EpisodeFile(out)


def _take_up(parts: Path, work: Collection) -> None:
    """Begin the folder of shards, or make sure that those in it are of this collection."""
    now = finite(work.about())
    if not any(parts.glob("shard-*.h5")):  # nothing that could be of another
        write_json(parts / "collection.json", now)
        return
    before = read_json(parts / "collection.json")
    if differ := [name for name in now if before.get(name) != now[name]]:
        listed = ", ".join(f"{name} ({before.get(name)!r}, now {now[name]!r})" for name in differ)
        raise InputError(
            f"{parts} has what was collected with other settings: {listed}. Go on with those, delete the folder, or "
            "choose another name for the episodes."
        )


def _collect_missing(work: Collection, parts: Path, processes: int, tell: Tell) -> None:
    missing = [number for number in work.shards if not work.place(parts, number).exists()]
    done = work.episodes - sum(len(work.numbers(number)) for number in missing)

    def count(shard: int) -> None:
        nonlocal done
        done += len(work.numbers(shard))
        tell(done, work.episodes)

    tell(done, work.episodes)
    try:
        carry_out(partial(_collect_shard, work, parts), missing, processes, count)
    except BrokenExecutor as error:
        raise InputError(
            "A process that collects died: it was killed, or had no memory left, or could not be started because the "
            f"script has no `if __name__ == '__main__':`. {done} of {work.episodes} episodes are kept in {parts}: "
            "call again with the same settings, and collecting goes on from there."
        ) from error


def _collect_shard(work: Collection, parts: Path, shard: int) -> None:
    """In a worker: an environment of its own, and its episodes."""
    env = work.make()
    try:
        check_actions(env)
        with EpisodeWriter(work.place(parts, shard), work.compressed) as writer:
            for number in work.numbers(shard):
                stop_if_asked()
                writer.append(roll_out(env, work.policy, work.length, work.seed, number, options=work.options))
    finally:
        env.close()


def _put_together(shards: list[Path], whole: EpisodeWriter) -> None:
    with whole as writer:
        for path in shards:
            with EpisodeFile(path) as file:
                for number in range(len(file)):
                    writer.append(file.episode(number))
