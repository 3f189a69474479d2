"""Learning rates as functions of the step: no state, so nothing to save.

Each schedule gives the factor on the base rate at `step` of `steps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from jepatlas.core.errors import InputError

__all__ = ["ConstantSchedule", "CosineSchedule", "OneCycleSchedule", "Schedule"]


@dataclass(frozen=True)
class ConstantSchedule:
    kind: ClassVar[str] = "constant"

    warmup: int = 0
    """Steps of linear rise from zero."""

    def __post_init__(self) -> None:
        _check_not_negative("warmup", self.warmup)

    def factor(self, step: int, steps: int) -> float:
        return _rise(step, self.warmup)


@dataclass(frozen=True)
class CosineSchedule:
    kind: ClassVar[str] = "cosine"

    warmup: int = 200
    """Steps of linear rise from zero."""
    hold: int = 0
    """Steps at the full rate before the fall begins."""
    floor: float = 0.0
    """The factor it falls to, and would have one step after the last."""

    def __post_init__(self) -> None:
        _check_not_negative("warmup", self.warmup)
        _check_not_negative("hold", self.hold)
        _check_not_negative("floor", self.floor)

    def factor(self, step: int, steps: int) -> float:
        start = self.warmup + self.hold
        if step < start:
            return _rise(step, self.warmup)
        progress = min(1.0, (step - start) / max(1, steps - start))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True)
class OneCycleSchedule:
    """Cosine rise to the full rate, then cosine fall to almost nothing ("Super-Convergence")."""

    kind: ClassVar[str] = "one-cycle"

    peak: float = 0.3
    """Share of the steps after which the rate is highest."""
    first: float = 0.04
    """The first factor."""
    last: float = 1e-4
    """The last factor."""

    def __post_init__(self) -> None:
        if not 0 < self.peak < 1:
            raise InputError(f"The peak of a one-cycle schedule lies between 0 and 1, but {self.peak} was given.")
        _check_not_negative("first", self.first)
        _check_not_negative("last", self.last)

    def factor(self, step: int, steps: int) -> float:
        turn = self.peak * steps
        if step < turn:
            return _between(self.first, 1.0, step / turn)
        return _between(1.0, self.last, min(1.0, (step - turn) / max(1.0, steps - 1 - turn)))


Schedule = ConstantSchedule | CosineSchedule | OneCycleSchedule


def _rise(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / (warmup + 1))


def _between(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


def _check_not_negative(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"A schedule's {name} must be finite and not negative, but {value} was given.")
