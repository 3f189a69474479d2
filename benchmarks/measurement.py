"""CPU time of two implementations, measured alternately so that both have the same noise, and peak memory."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["Comparison", "compare", "cpu_ms", "peak_memory"]

SHORT = 20.0  # milliseconds; shorter work is repeated
MOST = 50  # repeats

Prepare = Callable[[str], Callable[[], object]]


@dataclass(frozen=True)
class Comparison:
    name: str
    baseline: float
    ours: float
    ratio: float
    """baseline / ours: the median over consecutive pairs of measurements."""
    unit: str = "ms"

    @classmethod
    def of(cls, name: str, baseline: Sequence[float], ours: Sequence[float], unit: str = "ms") -> Self:
        """The comparison of measurements that were taken in pairs."""
        ratio = statistics.median(a / b for a, b in zip(baseline, ours, strict=True))
        return cls(name, statistics.median(baseline), statistics.median(ours), ratio, unit)


def compare(name: str, baseline: Callable[[], object], ours: Callable[[], object], turns: int = 15) -> Comparison:
    repeats = [max(1, round(SHORT / max(_warm_ms(work), SHORT / MOST))) for work in (baseline, ours)]
    pairs = [(cpu_ms(baseline, repeats[0]), cpu_ms(ours, repeats[1])) for _ in range(turns)]
    return Comparison.of(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def cpu_ms(work: Callable[[], object], repeats: int = 1) -> float:
    """CPU time of one call, the mean over `repeats`."""
    start = time.process_time()
    for _ in range(repeats):
        work()
    return 1e3 * (time.process_time() - start) / repeats


def _warm_ms(work: Callable[[], object]) -> float:
    """The time of the second call; the first one compiles."""
    work()
    return cpu_ms(work)


def peak_memory(prepare: Prepare, name: str) -> float:
    """Peak memory of `prepare(name)()` in megabytes, without that of the preparation, measured in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_growth, prepare, name).result()


def _growth(prepare: Prepare, name: str) -> float:
    task = prepare(name)
    Path("/proc/self/clear_refs").write_text("5")  # Linux: reset the recorded peak
    before = _status("VmRSS")
    task()
    return _status("VmHWM") - before


def _status(name: str) -> float:
    """A field of /proc/self/status in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
