"""Exponential moving averages of tensors and networks.

    θ̄ ← m θ̄ + (1 − m) θ

The momentum of a network may rise to 1 during training. It is a function of the step, so checkpoints store only the
averaged weights.
"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn

from jepatlas.nn.network_configs import Rise

__all__ = ["EMANetwork", "ema_network", "ema_update", "momentum_at"]


@torch.no_grad()
def ema_update(average: Tensor, value: Tensor, rate: float) -> None:
    """average ← (1 − rate) · average + rate · value, in place; `rate` is one minus the momentum."""
    average.lerp_(value.to(average.device, average.dtype), rate)


@torch.no_grad()
def ema_network(average: nn.Module, network: nn.Module, momentum: float) -> None:
    """Update the parameters of `average` towards those of `network`; buffers (running statistics) are copied."""
    for slow, fast in zip(average.parameters(), network.parameters(), strict=True):
        ema_update(slow, fast, 1 - momentum)
    for slow, fast in zip(average.buffers(), network.buffers(), strict=True):
        slow.copy_(fast)


class EMANetwork(nn.Module):
    """A copy of a network that receives no gradient and follows the network by `update`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)

    def update(self, network: nn.Module, momentum: float) -> None:
        ema_network(self.network, network, momentum)


def momentum_at(first: float, step: int, steps: int, rise: Rise = "cosine") -> float:
    """Momentum that rises from `first` at step 0 to 1 at step `steps`.

    >>> [momentum_at(0.996, step, 100) for step in (0, 50, 100)]
    [0.996, 0.998, 1.0]
    >>> [round(momentum_at(0.996, 25, 100, rise), 6) for rise in ("cosine", "line")]
    [0.996586, 0.997]
    """
    progress = min(step, steps) / max(1, steps)
    remaining = 1 - progress
    if rise == "cosine":
        remaining = (1 + math.cos(math.pi * progress)) / 2
    return 1 - (1 - first) * remaining
