"""A learned effort that cannot be anything else than one.

    L(x, v) = c‖v‖ + Σ_j w_j(x) · max_k (a_jk(x)·v)⁺        w_j = softplus of a network's output, so never negative

Every term is homogeneous of degree one and convex in v, and none is negative: the floor is c, whatever is learned. With
one a per j the effort there and back could differ by a linear form only; the maximum over several is free of that.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from jepatlas.core.errors import InputError
from jepatlas.energy.action.effort import norm

__all__ = ["LearnedEffort"]


class LearnedEffort(nn.Module):
    """An effort on points of the given width; points are standardised by the mean and spread it is told."""

    mean: Tensor
    spread: Tensor
    unit: Tensor

    def __init__(self, width: int, floor: float, *, hidden: int = 32, terms: int = 8, choices: int = 2) -> None:
        super().__init__()
        if not floor > 0:
            raise InputError(f"The floor c of an effort must be above 0, but {floor} was given.")
        self.width, self.floor, self.terms, self.choices = width, float(floor), terms, choices
        self.net = nn.Sequential(
            nn.Linear(width, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, terms * (choices * width + 1)),
        ).double()
        self.register_buffer("mean", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("spread", torch.ones(width, dtype=torch.float64))
        self.register_buffer("unit", torch.ones((), dtype=torch.float64))  # a usual effort per length

    def forward(self, x: Tensor, v: Tensor) -> Tensor:
        found = self.net((x - self.mean) / self.spread)
        weights, directions = found.split([self.terms, self.terms * self.choices * self.width], -1)
        pushes = directions.unflatten(-1, (self.terms, self.choices, self.width)) @ v[..., None, :, None]
        against = torch.relu(pushes[..., 0]).amax(-1)  # (..., terms)
        return self.floor * norm(v) + self.unit * (softplus(weights) * against).sum(-1)
