"""Run a function in several real processes that form a gloo group, as torchrun would."""

from __future__ import annotations

import importlib.util
import inspect
import multiprocessing
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["ProcessFailed", "run_processes"]


class ProcessFailed(AssertionError):
    """A process raised or died; the message is its traceback."""


def run_processes(function: Callable[..., Any], world_size: int, *args: Any, timeout: float = 120.0) -> list[Any]:
    """Call `function(*args)` in each of `world_size` spawned processes; the results, by rank.

    The function must stand at the top level of a file, and that file is what the processes load: so it can be a test
    module, whatever name pytest has given it. Arguments and results must be picklable.
    """
    with tempfile.TemporaryDirectory() as folder:
        job = (inspect.getfile(function), function.__qualname__, args)
        context = multiprocessing.get_context("spawn")
        processes = [
            context.Process(target=_process, args=(Path(folder), rank, world_size, job)) for rank in range(world_size)
        ]
        for process in processes:
            process.start()
        try:
            _wait(processes, Path(folder), time.monotonic() + timeout)
        finally:
            for process in processes:
                process.kill()
                process.join()
        return [pickle.loads((Path(folder) / f"result-{rank}").read_bytes()) for rank in range(world_size)]


def _wait(processes: list[Any], folder: Path, deadline: float) -> None:
    """Until all have ended well. The others would wait for ever in a collective once one has failed."""
    while any(process.exitcode is None for process in processes):
        if time.monotonic() > deadline:
            raise ProcessFailed("The processes did not end in time: does each of them take part in every collective?")
        if any(process.exitcode for process in processes):
            break
        time.sleep(0.01)
    for rank, process in enumerate(processes):
        if process.exitcode:
            error = folder / f"error-{rank}"
            reason = error.read_text() if error.exists() else f"it ended with exit code {process.exitcode}"
            raise ProcessFailed(f"Process {rank} of {len(processes)}: {reason}")


def _process(folder: Path, rank: int, world_size: int, job: tuple[str, str, tuple[Any, ...]]) -> None:
    try:
        if sys.platform == "linux":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the host's name need not resolve
        torch.set_num_threads(1)
        file, name, args = job
        function = getattr(_load(file), name)
        dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=world_size)
        result = function(*args)
        dist.destroy_process_group()
        (folder / f"result-{rank}").write_bytes(pickle.dumps(result))
    except BaseException:
        (folder / f"error-{rank}").write_text(traceback.format_exc())
        raise SystemExit(1) from None


def _load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{Path(file).stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
