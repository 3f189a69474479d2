"""The processes that collect: spawned, on one thread each, and gone when whoever started them is.

One process is this one. Ctrl-C stops the process that started the others alone; it asks them to stop, and they do so
before their next episode.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from jepatlas.core.errors import InputError

__all__ = ["carry_out", "stop_if_asked"]

_asked: Any = None  # in a worker, an event that says so


def carry_out(work: Callable[[int], None], tasks: Sequence[int], processes: int, tell: Callable[[int], None]) -> None:
    """Call `work(task)` for every task, and `tell(task)` here when it is done.

    Raises what `work` raised; a process that dies under its task is a `BrokenExecutor`.
    """
    if processes < 1:
        raise InputError(f"processes is {processes}, but it must be at least 1.")
    if processes > 1 and len(tasks) > 1:
        _spawned(work, tasks, min(processes, len(tasks)), tell)
        return
    for task in tasks:
        with _one_thread():
            work(task)
        tell(task)


def _spawned(work: Callable[[int], None], tasks: Sequence[int], processes: int, tell: Callable[[int], None]) -> None:
    _check_picklable(work)
    context = multiprocessing.get_context("spawn")  # forking after torch or numba have started threads can hang
    stop = context.Event()
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(stop,)) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                tell(futures[future])
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _check_picklable(work: Callable[[int], None]) -> None:
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"What makes the environment, or the policy, cannot be sent to other processes: {error}. Let both be "
            "functions or classes of a module (functools.partial(gymnasium.make, name) is one), or set processes to 1."
        ) from error


def _begin(stop: Any) -> None:
    """What a worker does first."""
    global _asked  # noqa: PLW0603  (a worker has no other place where its tasks could find it)
    _asked = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def stop_if_asked() -> None:
    """End the task of this worker where whoever started it has been interrupted."""
    if _asked is not None and _asked.is_set():
        raise InterruptedError("Asked to stop.")


@contextmanager
def _one_thread() -> Iterator[None]:
    """As in a process of its own: with other threads some sums would have other bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
