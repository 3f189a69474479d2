"""Run a function in several real processes that form a gloo group, as torchrun would.

The processes are started once and stay for the next job, for that takes longer than most jobs. Each job loads its file
anew and joins a group of its own; after a failure, all processes are ended and the next job has new ones.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from forked import CONTEXT

__all__ = ["ProcessFailed", "run_processes"]


class ProcessFailed(AssertionError):
    """A process raised or died; the message is its traceback."""


class Member(NamedTuple):
    process: Any
    pipe: Any


MEMBERS: list[Member] = []  # by rank; a job of n processes takes the first n


def run_processes(function: Callable[..., Any], world_size: int, *args: Any, timeout: float = 120.0) -> list[Any]:
    """Call `function(*args)` in each of `world_size` processes; the results, by rank.

    The function must stand at the top level of a file, and that file is what the processes load: so it can be a test
    module, whatever name pytest has given it. Arguments and results must be picklable.
    """
    while len(MEMBERS) < world_size:
        MEMBERS.append(_member())
    members = MEMBERS[:world_size]
    try:
        with tempfile.TemporaryDirectory() as folder:
            for rank, member in enumerate(members):
                job = (inspect.getfile(function), function.__qualname__, args)
                member.pipe.send_bytes(pickle.dumps((f"file://{folder}/group", rank, world_size, job)))
            return _results([member.pipe for member in members], time.monotonic() + timeout)
    except BaseException:
        _end()
        raise


def _member() -> Member:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)  # it ends with us
    process.start()
    theirs.close()
    return Member(process, ours)


def _end() -> None:
    for process, pipe in MEMBERS:
        process.kill()
        process.join()
        pipe.close()
    MEMBERS.clear()


def _results(pipes: list[Any], deadline: float) -> list[Any]:
    """Until all have answered. The others would wait for ever in a collective once one has failed."""
    results: dict[int, Any] = {}
    while len(results) < len(pipes):
        ready = wait([pipe for rank, pipe in enumerate(pipes) if rank not in results], deadline - time.monotonic())
        if not ready:
            raise ProcessFailed("The processes did not end in time: does each of them take part in every collective?")
        for rank in (rank for rank, pipe in enumerate(pipes) if pipe in ready):
            results[rank] = _answer(pipes[rank], f"Process {rank} of {len(pipes)}")
    return [results[rank] for rank in range(len(pipes))]


def _answer(pipe: Any, who: str) -> Any:
    try:
        result, error = pickle.loads(pipe.recv_bytes())
    except EOFError:
        raise ProcessFailed(f"{who}: it ended without an answer") from None
    if error:
        raise ProcessFailed(f"{who}: {error}")
    return result


def _serve(pipe: Any) -> None:
    """One job after the other, until the tests are over or have closed the pipe."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the host's name need not resolve
    torch.set_num_threads(1)
    while True:
        try:
            given = pipe.recv_bytes()
        except EOFError:
            return
        try:
            answer = pickle.dumps((_run(*pickle.loads(given)), None))
        except BaseException:
            answer = pickle.dumps((None, traceback.format_exc()))
        pipe.send_bytes(answer)


def _run(group: str, rank: int, world_size: int, job: tuple[str, str, tuple[Any, ...]]) -> Any:
    file, name, args = job
    function = getattr(_load(file), name)
    dist.init_process_group("gloo", init_method=group, rank=rank, world_size=world_size)
    result = function(*args)
    dist.barrier()  # who leaves first would break off the connections of who still joins
    dist.destroy_process_group()
    return result


def _load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{Path(file).stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
