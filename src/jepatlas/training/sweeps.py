"""Sweeps: many runs over any `concurrent.futures.Executor`, resumable.

Each job has a folder and writes a `result.json` when done. A repeated sweep runs only the missing jobs: finished and
failed runs are done, crashed and interrupted ones are repeated. A failing job does not affect the others.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepatlas.core.errors import InputError, check_count, require
from jepatlas.core.files import read_json, write_json
from jepatlas.core.locks import writer_lock
from jepatlas.core.processes import exit_with_parent, torch_threads
from jepatlas.core.provenance import provenance
from jepatlas.training.checkpoint import fingerprint

__all__ = ["Job", "OpenExecutor", "SweepResult", "dask_cluster", "local_processes", "sweep"]

ATTEMPTS = 3  # of a job whose process dies

OpenExecutor = Callable[[], AbstractContextManager[Executor]]

# Threads of numpy's libraries are fixed at import; torch's are set for each job.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


@dataclass(frozen=True)
class Job:
    name: str
    recipe: dict[str, Any]  # plain data


@dataclass(frozen=True)
class SweepResult:
    name: str
    status: str  # as returned by the run ("finished", "failed", "interrupted"), or "crashed" with an error
    record: dict[str, Any]
    made: dict[str, Any] | None = None  # version and commit of the code that ran the job, if known


def sweep(
    jobs: Sequence[Job],
    run: Callable[[dict[str, Any], str], dict[str, Any]],
    folder: Path,
    open_executor: OpenExecutor,
    on_result: Callable[[SweepResult], None] = lambda result: None,
) -> list[SweepResult]:
    """Run `run(recipe, folder)` for each job and return the results in the order of the jobs.

    `run` must be importable in the workers and returns a record with a `status`. Jobs with the status "finished" or
    "failed" are done; "interrupted" jobs are repeated by the next sweep. `on_result` is called for each new result.
    """
    names = [job.name for job in jobs]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"Job names of a sweep must be unique, but {repeated} occur more than once.")
    results: dict[str, SweepResult] = {}
    for job in jobs:
        saved = _read_result(folder, job)
        if saved is not None:
            results[job.name] = saved
    for _ in range(ATTEMPTS):
        waiting = [job for job in jobs if job.name not in results]
        if not waiting:
            break
        with open_executor() as executor:
            for result in _run_jobs(executor, waiting, run, folder):
                results[result.name] = result
                on_result(result)
    for name in names:
        if name not in results:
            results[name] = SweepResult(name, "crashed", {"error": "its process died"})
    return [results[name] for name in names]


def _run_jobs(executor: Executor, jobs: Iterable[Job], run: Callable[..., Any], folder: Path) -> Iterable[SweepResult]:
    futures: dict[Future[Any], Job] = {}
    for job in jobs:
        futures[executor.submit(_run_on_one_thread, run, job.recipe, str(folder / job.name))] = job
    try:
        for future in as_completed(futures):
            # Jobs whose process or scheduler died are left to the next attempt.
            if not future.cancelled() and not isinstance(future.exception(), BrokenExecutor):
                yield _save_result(futures[future], future, folder)
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _run_on_one_thread(run: Callable[..., Any], recipe: dict[str, Any], folder: str) -> tuple[dict[str, Any], Any]:
    """Run one job with one thread, unless its recipe asks for more, so that the cores are not oversubscribed.

    Provenance is recorded in the worker before the run: a sweep may be continued by later code or on other machines.
    """
    made = {name: value for name, value in provenance(0).items() if name != "seed"}
    with torch_threads(1), writer_lock(Path(folder), wait=True):  # another sweep may run the same job
        return made, run(recipe, folder)


def _save_result(job: Job, future: Future[Any], folder: Path) -> SweepResult:
    error = future.exception()
    if error is not None:
        return SweepResult(job.name, "crashed", {"error": f"{type(error).__name__}: {error}"})
    made, record = future.result()
    result = SweepResult(job.name, record["status"], record, made)
    if result.status in ("finished", "failed"):
        saved = {"recipe": fingerprint(job.recipe), "status": result.status, "made": made, "record": record}
        write_json(folder / job.name / "result.json", saved)
    return result


def _read_result(folder: Path, job: Job) -> SweepResult | None:
    path = folder / job.name / "result.json"
    if not path.exists():
        return None
    saved = read_json(path)
    if not isinstance(saved, dict) or not {"recipe", "status", "record"} <= saved.keys():
        raise InputError(f"{path} is not the result of a run. Delete it to repeat the run.")
    if saved["recipe"] != fingerprint(job.recipe):
        raise InputError(f"{path} belongs to another recipe of the same name. Choose another folder for this sweep.")
    return SweepResult(job.name, saved["status"], saved["record"], saved.get("made"))


def local_processes(workers: int) -> OpenExecutor:
    """Worker processes on this machine. They are spawned, because forking after torch has started threads can hang."""
    check_count("workers", workers)
    return lambda: _LocalProcesses(workers)


class _LocalProcesses(Executor):
    """One process pool per worker, so that a dying process affects no other job.

    Each pool is driven by one thread. Workers ignore Ctrl-C; the parent sends them SIGTERM, on which a run saves a
    checkpoint. Workers exit when the parent does.
    """

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, initializer=_block_interrupts)
        self._local = threading.local()
        self._starting = threading.Lock()
        self._pools: dict[int, ProcessPoolExecutor] = {}  # by process id

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run in a thread, which owns one process."""
        pid = getattr(self._local, "pid", None) or self._start_process()
        try:
            return self._pools[pid].submit(fn, *args, **kwargs).result()
        except BrokenExecutor:
            self._local.pid = None
            self._pools.pop(pid).shutdown()
            raise

    def _start_process(self) -> int:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(1, mp_context=context, initializer=exit_with_parent)
        with self._starting, _environment(ONE_THREAD):
            pid = pool.submit(os.getpid)  # starts the process; other threads need not wait until it is up
        self._local.pid = pid.result()
        self._pools[self._local.pid] = pool
        return self._local.pid

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
    """Set environment variables for the processes started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def _block_interrupts() -> None:
    """Block Ctrl-C in this thread and in the processes that it starts."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def dask_cluster(address: str) -> OpenExecutor:
    """Workers of a dask scheduler (SSH, SLURM by dask-jobqueue, Kubernetes, or another terminal).

    When a sweep is stopped, runs in progress continue on the workers.
    """
    distributed = require("distributed", "cluster", "Sweeping over a dask cluster")

    @contextmanager
    def connect() -> Iterator[Executor]:
        try:
            client = distributed.Client(address, set_as_default=False, timeout="10s")
        except (OSError, ValueError) as error:
            raise InputError(f"No dask scheduler responds at {address}: {error}") from error
        with client, client.get_executor(pure=False) as executor:
            yield executor

    return connect
