"""Where the runs of a sweep are carried out: processes on this machine, or the workers of a dask cluster."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from jepatlas.core.errors import InputError, require

__all__ = ["LocalProcesses", "OpenExecutor", "dask_cluster", "local_processes"]

OpenExecutor = Callable[[], AbstractContextManager[Executor]]

# numpy's own threads are counted when it is loaded; torch's are set by the sweep.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def local_processes(workers: int) -> OpenExecutor:
    """Spawned processes on this machine: forking after torch has started threads can hang."""
    if workers < 1:
        raise InputError(f"A sweep needs at least 1 worker, but {workers} was given.")
    return lambda: LocalProcesses(workers)


class LocalProcesses(Executor):
    """Processes that each have a pool of their own, so that one that dies takes no other job with it.

    Ctrl-C in a terminal does not reach them: it is passed on as a request to end, on which a run saves itself. And
    they do not outlive this process, however it ends.
    """

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, initializer=_block_interrupts)
        self._own = threading.local()
        self._starting = threading.Lock()
        self._pools: dict[int, ProcessPoolExecutor] = {}  # by the id of their process

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In a thread, which stands for one process."""
        pid = getattr(self._own, "pid", None) or self._start()
        try:
            return self._pools[pid].submit(fn, *args, **kwargs).result()
        except BrokenExecutor:
            self._own.pid = None
            self._pools.pop(pid).shutdown()
            raise

    def _start(self) -> int:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)
        with self._starting, _environment(ONE_THREAD):
            pid = pool.submit(os.getpid)  # starts the process; others need not wait until it is up
        self._own.pid = pid.result()
        self._pools[self._own.pid] = pool
        return self._own.pid

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for pid in list(self._pools):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for pool in list(self._pools.values()):
            pool.shutdown(wait)

    def __exit__(self, *error: object) -> None:
        self.shutdown(cancel_futures=error[0] is not None)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """What processes started here find in their environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _block_interrupts() -> None:
    """Of this thread, and so of the processes that it starts."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def dask_cluster(address: str) -> OpenExecutor:
    """The workers of a dask scheduler: SSH, SLURM (dask-jobqueue), Kubernetes, or another terminal.

    A sweep that is stopped leaves what the workers are at to them: a run in flight goes on until it is done.
    """
    distributed: Any = require("distributed", "cluster", "Sweeping over a dask cluster")

    @contextmanager
    def connect() -> Iterator[Executor]:
        try:
            client = distributed.Client(address, set_as_default=False, timeout="10s")
        except (OSError, ValueError) as error:
            raise InputError(f"No dask scheduler answers at {address}: {error}") from error
        with client, client.get_executor(pure=False) as executor:
            yield executor

    return connect
