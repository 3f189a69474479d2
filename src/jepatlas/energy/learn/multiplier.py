"""A Lagrange multiplier that climbs while everything else descends: one backward pass, one optimiser.

    max over λ ≥ 0, min over θ:   f(θ) + λ · (g(θ) − ε²),     λ = softplus(rate · p)

Its gradient is reversed on the way back. Adam divides every gradient by its own size, so a factor on the gradient
would not change how fast λ moves; a factor on the parameter does: with raw = rate · p, a step of lr in p is one of
rate · lr in raw. The gradient that p is given is that of raw, so that clipping sees no rate.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Multiplier"]


class Multiplier(nn.Module):
    """λ; `first` is its value before training, `rate` its learning rate over that of the other parameters."""

    def __init__(self, first: float, rate: float) -> None:
        super().__init__()
        self.rate = rate
        raw = math.log(math.expm1(first))  # softplus(raw) = first
        self.parameter = nn.Parameter(torch.tensor([raw / rate]))  # a vector: sharding takes no scalars

    def forward(self) -> Tensor:
        return F.softplus(cast(Tensor, _Ascent.apply(self.parameter, self.rate))).squeeze(0)


class _Ascent(torch.autograd.Function):
    """rate · p forwards; backwards the gradient with its sign turned, and without the rate."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, rate: float) -> Tensor:
        return rate * parameter

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return -grads[0], None
