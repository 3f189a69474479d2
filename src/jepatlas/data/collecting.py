"""Parallel collection of episodes from a gymnasium environment, resumable and reproducible bit for bit.

Episodes are collected in shards, one file each, in the folder `OUT.parts`. A repeated call collects only the missing
shards; when all are present they are merged into `OUT`. An episode depends only on the seed and its number, so the
result does not depend on the number of processes or on interruptions.
"""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

import jepatlas
from jepatlas.core.errors import InputError, check_count
from jepatlas.core.files import finite, read_json, write_json
from jepatlas.core.locks import writer_lock
from jepatlas.core.processes import exit_with_parent, limited_threads
from jepatlas.data.episode_writer import EpisodeWriter
from jepatlas.data.episodes import EpisodeFile
from jepatlas.data.policies import EpisodicPolicy, Policy
from jepatlas.data.rollouts import check_actions, roll_out

if TYPE_CHECKING:
    import gymnasium

__all__ = ["collect", "plain_description"]

Progress = Callable[[int, int], None]
"""Called with the number of finished episodes and the total."""

PLAN = "collection.json"  # in the folder of shards: the settings

_stop_event: Any = None  # in a worker process, set when the parent was interrupted


def collect(
    make: Callable[[], gymnasium.Env[Any, Any]],
    policy: Policy | EpisodicPolicy,
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
    progress: Progress = lambda done, episodes: None,
) -> EpisodeFile:
    """Collect `episodes` episodes of at most `length` steps into the file `out`.

    `make` creates the environment (with render_mode="rgb_array" for pixels) and is called in each process. With several
    processes `make` and `policy` must be picklable. `options` are passed to every reset. An interruption loses at most
    one shard of `shard` episodes per process. `about` (the world or the environment id) is stored in the file together
    with the policy, the seed and the version of jepatlas. `progress(done, episodes)` is called once at the start and
    after each shard.
    """
    out = Path(out)
    work = _Collection(make, policy, episodes, length, seed, shard, options, compressed)
    with writer_lock(out):
        return _collect(work, out, processes, dict(about or {}), progress)


def _collect(work: _Collection, out: Path, processes: int, about: dict[str, Any], progress: Progress) -> EpisodeFile:
    parts = out.with_name(f"{out.name}.parts")
    if out.exists() and not (parts / PLAN).exists():
        raise InputError(f"{out} exists already. Delete it or choose another file.")
    _open_parts(parts, work)
    if out.exists():  # complete: the process was killed before it could remove the parts
        _remove_parts(parts)
        progress(work.episodes, work.episodes)
        return EpisodeFile(out)
    try:
        _collect_missing(work, parts, processes, progress)
    finally:
        if not any(parts.glob("shard-*.h5")):  # nothing to resume from
            shutil.rmtree(parts)
    origin = {
        "version": jepatlas.__version__,
        "seed": work.seed,
        "policy": plain_description(work.policy),
        **about,
    }
    with EpisodeWriter(out, work.compressed, about=origin) as writer:
        for number in work.shards:
            with EpisodeFile(work.shard_path(parts, number)) as file:
                for episode in range(len(file)):
                    writer.append(file.episode(episode))
    _remove_parts(parts)
    return EpisodeFile(out)


@dataclass(frozen=True)
class _Collection:
    """Settings of a collection, and its division into shards."""

    make: Callable[[], gymnasium.Env[Any, Any]]
    policy: Policy | EpisodicPolicy
    episodes: int
    length: int
    seed: int
    shard: int
    options: dict[str, Any] | None
    compressed: bool

    def __post_init__(self) -> None:
        for name in ("episodes", "length", "shard"):
            check_count(name, getattr(self, name))

    @property
    def shards(self) -> range:
        return range(-(-self.episodes // self.shard))

    def episodes_of(self, shard: int) -> range:
        return range(shard * self.shard, min(self.episodes, (shard + 1) * self.shard))

    def shard_path(self, parts: Path, shard: int) -> Path:
        return parts / f"shard-{shard:05d}-of-{len(self.shards):05d}.h5"

    def settings(self) -> dict[str, Any]:
        """The settings as plain data, to compare with those of an interrupted collection."""
        return {field.name: plain_description(getattr(self, field.name)) for field in fields(self)}


def _open_parts(parts: Path, work: _Collection) -> None:
    """Create the folder of shards, or check that the shards in it were collected with the same settings."""
    settings = finite(work.settings())
    if not (parts / PLAN).exists():
        write_json(parts / PLAN, settings)
        return
    earlier = read_json(parts / PLAN)
    changed = [name for name in settings if earlier.get(name) != settings[name]]
    if changed:
        listed = ", ".join(f"{name} ({earlier.get(name)!r}, now {settings[name]!r})" for name in changed)
        raise InputError(
            f"{parts} holds episodes that were collected with other settings: {listed}. Use those settings, delete the "
            "folder, or choose another output file."
        )


def _remove_parts(parts: Path) -> None:
    """Remove the plan last, because it identifies the folder as this collection."""
    for shard in parts.glob("*.h5"):
        shard.unlink()
    shutil.rmtree(parts)


def _collect_missing(work: _Collection, parts: Path, processes: int, progress: Progress) -> None:
    missing = [shard for shard in work.shards if not work.shard_path(parts, shard).exists()]
    done = work.episodes - sum(len(work.episodes_of(shard)) for shard in missing)

    def count(shard: int) -> None:
        nonlocal done
        done += len(work.episodes_of(shard))
        progress(done, work.episodes)

    progress(done, work.episodes)
    try:
        _run_tasks(partial(_collect_shard, work, parts), missing, processes, count)
    except BrokenExecutor as error:
        raise InputError(
            "A collecting process died: it was killed, ran out of memory, or could not start because the script has no "
            f"`if __name__ == '__main__':` guard. {done} of {work.episodes} episodes are kept in {parts}. Call again "
            "with the same settings to continue."
        ) from error


def _collect_shard(work: _Collection, parts: Path, shard: int) -> None:
    env = work.make()
    try:
        check_actions(env)
        with EpisodeWriter(work.shard_path(parts, shard), work.compressed) as writer:
            for number in work.episodes_of(shard):
                if _stop_event is not None and _stop_event.is_set():
                    raise InterruptedError("The collection was interrupted.")
                writer.append(roll_out(env, work.policy, work.length, work.seed, number, options=work.options))
    finally:
        env.close()


def _run_tasks(work: Callable[[int], None], tasks: Sequence[int], processes: int, done: Callable[[int], None]) -> None:
    """Call `work(task)` for each task and `done(task)` here when it returns.

    Every task runs on one thread, because some sums depend on the number of threads. Exceptions of `work` are raised
    here; a process that dies raises BrokenExecutor.
    """
    check_count("processes", processes)
    if processes == 1 or len(tasks) < 2:
        for task in tasks:
            with limited_threads():
                work(task)
            done(task)
        return
    _check_picklable(work)
    context = multiprocessing.get_context("spawn")  # forking after torch or numba have started threads can hang
    stop = context.Event()
    with ProcessPoolExecutor(min(processes, len(tasks)), context, initializer=_init_worker, initargs=(stop,)) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                done(futures[future])
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _check_picklable(work: Callable[[int], None]) -> None:
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"The environment factory or the policy cannot be pickled: {error}. Use functions or classes of a module, "
            "such as functools.partial(gymnasium.make, name), or set processes to 1."
        ) from error


def _init_worker(stop: Any) -> None:
    """Workers ignore Ctrl-C; the parent sets the event instead, and they stop before the next episode."""
    import torch  # noqa: PLC0415

    global _stop_event  # noqa: PLW0603  (tasks of a pool can reach only module globals)
    _stop_event = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threadpool_limits(1)
    exit_with_parent()


def plain_description(value: Any) -> Any:  # noqa: PLR0911  (one return for each form)
    """Plain data that identifies a callable or a config: qualified names and arguments.

    >>> plain_description(partial(dict, x=(1, 2.5)))
    {'partial': 'builtins.dict', 'args': [], 'keywords': {'x': [1, 2.5]}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_description(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain_description(item) for key, item in value.items()}
    if isinstance(value, partial):
        function = plain_description(value.func)
        arguments, keywords = plain_description(value.args), plain_description(value.keywords)
        return {"partial": function, "args": arguments, "keywords": keywords}
    if is_dataclass(value) and not isinstance(value, type):
        settings = {field.name: plain_description(getattr(value, field.name)) for field in fields(value)}
        return {"class": _qualified_name(type(value)), **settings}
    owner = getattr(value, "__self__", None)
    if owner is not None and hasattr(value, "__func__"):
        return {"method": value.__name__, "of": plain_description(owner)}
    if hasattr(value, "__qualname__"):
        return _qualified_name(value)
    return {"class": _qualified_name(type(value))}


def _qualified_name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
