"""Time in a current: a vehicle of speed s in a current W(x) (Zermelo's problem, a Randers metric where |W| < s).

    |v − T·W| = T·s,  so  T = |v|² / (v·W + √((v·W)² + (s² − |W|²)|v|²))

is the time that the displacement v takes. It is +∞ where no course makes good v: outside the cone of a current that is
at least as fast as the vehicle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["Current"]


@dataclass(frozen=True)
class Current:
    """Time to go with or against a current that is nowhere faster than `fastest`."""

    current: Callable[[Tensor], Tensor]  # (..., d) → (..., d)
    fastest: float
    speed: float = 1.0

    def __post_init__(self) -> None:
        if not (self.speed > 0 and self.fastest >= 0):
            raise InputError(f"Speeds must be positive: the vehicle's is {self.speed}, the current's {self.fastest}.")

    @classmethod
    def constant(cls, current: np.ndarray, speed: float = 1.0) -> Self:
        vector = np.asarray(current, dtype=np.float64)
        return cls(lambda x: torch.as_tensor(vector).to(x).expand_as(x), float(np.linalg.norm(vector)), speed)

    @property
    def floor(self) -> float:
        return 1 / (self.speed + self.fastest)

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        current = self.current(x)
        along, slack = (v * current).sum(-1), self.speed**2 - current.square().sum(-1)
        squares = v.square().sum(-1)
        inner = along.square() + slack * squares
        moving = squares > 0
        possible = moving & (inner >= 0) & ((along > 0) | (slack > 0))
        root = torch.where(possible & (inner > 0), inner, 1.0).sqrt() * (inner > 0)
        # of the two equal forms, the one without a difference of nearly equal numbers
        with_it = squares / torch.where(possible & (along >= 0), along + root, 1.0)
        against = (root - along) / torch.where(possible & (along < 0), slack, 1.0)
        time = torch.where(along >= 0, with_it, against)
        return torch.where(possible, time, torch.where(moving, torch.inf, 0.0))
