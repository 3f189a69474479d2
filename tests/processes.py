"""Run a function in several processes that form a gloo group, as with torchrun.

The processes are started once and reused, because starting takes longer than most jobs. Each job reloads its file and
joins a new group. After a failure all processes are killed, and the next job starts new ones.
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
    """Call `function(*args)` in `world_size` processes; return the results by rank.

    The processes load the file of the function, which may be a test module. The function must be at its top level;
    arguments and results must be picklable.
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
    process = CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)  # killed with this process
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
    """Collect the results; raise at the first failure, as the other processes may be blocked in a collective."""
    results: dict[int, Any] = {}
    while len(results) < len(pipes):
        ready = wait([pipe for rank, pipe in enumerate(pipes) if rank not in results], deadline - time.monotonic())
        if not ready:
            raise ProcessFailed(
                "Timeout: the processes did not finish. Each of them must take part in every collective."
            )
        for rank in (rank for rank, pipe in enumerate(pipes) if pipe in ready):
            results[rank] = _receive(pipes[rank], f"Process {rank} of {len(pipes)}")
    return [results[rank] for rank in range(len(pipes))]


def _receive(pipe: Any, name: str) -> Any:
    try:
        result, error = pickle.loads(pipe.recv_bytes())
    except EOFError:
        raise ProcessFailed(f"{name} ended without a result") from None
    if error:
        raise ProcessFailed(f"{name}: {error}")
    return result


def _serve(pipe: Any) -> None:
    """Run jobs until the pipe is closed."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the host name may not resolve
    torch.set_num_threads(1)
    while True:
        try:
            job = pipe.recv_bytes()
        except EOFError:
            return
        try:
            result = pickle.dumps((_run(*pickle.loads(job)), None))
        except BaseException:
            result = pickle.dumps((None, traceback.format_exc()))
        pipe.send_bytes(result)


def _run(group: str, rank: int, world_size: int, job: tuple[str, str, tuple[Any, ...]]) -> Any:
    file, name, args = job
    function = getattr(_load(file), name)
    dist.init_process_group("gloo", init_method=group, rank=rank, world_size=world_size)
    result = function(*args)
    dist.barrier()  # leaving early breaks the connections of processes that still join
    dist.destroy_process_group()
    return result


def _load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{Path(file).stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
