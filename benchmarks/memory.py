"""How much memory a piece of work takes: what a fresh process grows by at most, because a peak is never given back."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

__all__ = ["peak_of"]

Prepare = Callable[[str], Callable[[], object]]


def peak_of(prepare: Prepare, name: str) -> float:
    """Megabytes of `prepare(name)()`, without those of preparing it; both run in a process of their own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_growth, prepare, name).result()


def _growth(prepare: Prepare, name: str) -> float:
    task = prepare(name)
    Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak of what came before
    before = _status("VmRSS")
    task()
    return _status("VmHWM") - before


def _status(name: str) -> float:
    """A field of this process's status, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
