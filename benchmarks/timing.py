"""Two ways to do the same thing, timed in turns so that both meet the same noise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    name: str
    baseline: float
    ours: float
    ratio: float
    """How many times less ours takes: the median of the ratios of neighbouring turns."""
    unit: str = "ms"

    @classmethod
    def of(cls, name: str, baseline: Sequence[float], ours: Sequence[float], unit: str = "ms") -> Self:
        """From measurements in pairs."""
        ratio = statistics.median(a / b for a, b in zip(baseline, ours, strict=True))
        return cls(name, statistics.median(baseline), statistics.median(ours), ratio, unit)


def compare(name: str, baseline: Callable[[], object], ours: Callable[[], object], turns: int = 15) -> Comparison:
    for warm_up in (baseline, ours):
        warm_up()
    pairs = [(_cpu_ms(baseline), _cpu_ms(ours)) for _ in range(turns)]
    return Comparison.of(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def _cpu_ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)
