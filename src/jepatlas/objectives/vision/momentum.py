"""A twin of a network that follows it slowly: θ̄ ← m θ̄ + (1 − m) θ, with m from its first value up to 1 by a cosine or,
as I-JEPA has it, by a line.

The momentum is a function of the step, so nothing but the twin's weights needs saving.
"""

from __future__ import annotations

import copy
import math
from typing import Literal

import torch
from torch import nn

from jepatlas.core.errors import InputError

__all__ = ["MomentumTwin", "Rise", "check_momentum", "momentum_at"]

Rise = Literal["cosine", "line"]


class MomentumTwin(nn.Module):
    """A copy that no gradient reaches. Its running statistics are those of the network it follows."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)

    @torch.no_grad()
    def follow(self, network: nn.Module, momentum: float) -> None:
        for slow, fast in zip(self.network.parameters(), network.parameters(), strict=True):
            slow.lerp_(fast, 1 - momentum)
        for own, theirs in zip(self.network.buffers(), network.buffers(), strict=True):
            own.copy_(theirs)


def momentum_at(first: float, step: int, steps: int, rise: Rise = "cosine") -> float:
    """
    >>> [momentum_at(0.996, step, 100) for step in (0, 50, 100)]
    [0.996, 0.998, 1.0]
    >>> [round(momentum_at(0.996, 25, 100, rise), 6) for rise in ("cosine", "line")]
    [0.996586, 0.997]
    """
    done = min(step, steps) / max(1, steps)
    return 1 - (1 - first) * ((1 + math.cos(math.pi * done)) / 2 if rise == "cosine" else 1 - done)


def check_momentum(name: str, momentum: float) -> None:
    if not 0 <= momentum <= 1:
        raise InputError(f"{name}'s momentum lies between 0 and 1, but {momentum} was given.")
