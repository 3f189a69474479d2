"""Two ways to do the same thing, timed in turns so that both meet the same noise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    name: str
    baseline_ms: float
    ours_ms: float
    ratio: float
    """How many times faster ours is: the median of the ratios of neighbouring turns."""


def compare(name: str, baseline: Callable[[], object], ours: Callable[[], object], turns: int = 15) -> Comparison:
    for warm_up in (baseline, ours):
        warm_up()
    pairs = [(_cpu_seconds(baseline), _cpu_seconds(ours)) for _ in range(turns)]
    slow, fast = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    return Comparison(name, slow, fast, statistics.median(a / b for a, b in pairs))


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
