"""Expectile value learning: a goal-conditioned value from observed steps.

    L²_τ(u) = |τ − 1[u < 0]| · u²
    u = −r·1[s ≠ g] + γ^c · sg V(s', g) − V(s, g),     V = −E,     r = (1 − γ^c)/(1 − γ)

for a step s → s' of cost c. With unit costs this is the usual −1[s ≠ g] + γ V(s', g) − V(s, g). With τ > ½ better steps
have more weight, and the fixed point approaches that of the best step. This is not the cost d of the cheapest path but
the discounted (1 − γ^d)/(1 − γ), for any costs, since (1 − γ^{c+d}) = (1 − γ^c) + γ^c (1 − γ^d). Pairs without a path
converge to 1/(1 − γ). Compare the learned energy with the discounted truth.

With a unit of cost other than 1, this holds for E/unit and d/unit. Expectations are plain means over rows, so data
parallelism needs no further communication, as in `qrl`.
"""

from __future__ import annotations

import copy
import math
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.errors import check_positive
from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import ExpectileConfig
from jepatlas.energy.learn.embedded import EmbeddedEnergy
from jepatlas.nn.ema import ema_network

__all__ = ["Expectile", "discounted", "expectile_loss", "undiscount"]

Numbers = TypeVar("Numbers", np.ndarray, Tensor)


class Expectile(nn.Module):
    """Objective on `Steps`. Train it with `collapse=0`, as `QRL`. The energy's head decides whether it is symmetric."""

    def __init__(self, energy: EmbeddedEnergy, config: ExpectileConfig | None = None, unit: float = 1.0) -> None:
        super().__init__()
        check_positive("unit", unit)
        self.config = config or ExpectileConfig()
        self.unit = unit
        energy.scale.fill_(unit)
        self.energy = energy
        self.target = None if self.config.target is None else copy.deepcopy(energy).requires_grad_(False)

    def forward(self, batch: Steps, step: int) -> Loss:
        gamma = self.config.gamma
        cost = batch.cost / self.unit
        value = -self.energy(batch.x, batch.goal) / self.unit
        with torch.no_grad():
            target = self.energy if self.target is None else self.target
            next_value = -target(batch.x_next, batch.goal) / self.unit
        not_at_goal = (batch.x != batch.goal).any(-1)
        error = -discounted(cost, gamma) * not_at_goal + gamma**cost * next_value - value
        total = expectile_loss(error, self.config.tau).mean()
        return Loss(total, {"expectile": total.detach(), "value": value.mean().detach()})

    def encode(self, x: Tensor) -> Tensor:
        return self.energy.embed(x)

    def after_step(self, step: int) -> None:
        """target ← decay · target + (1 − decay) · energy"""
        if self.target is not None and self.config.target is not None:
            ema_network(self.target, self.energy, self.config.target)

    def smallest_batch(self, dim: int) -> int:
        return 1


def expectile_loss(error: Tensor, tau: float) -> Tensor:
    """L²_τ: the squared error with weight τ if positive and 1 − τ if negative."""
    return torch.where(error < 0, 1 - tau, tau) * error.square()


def discounted(truth: Numbers, gamma: float) -> Numbers:
    """(1 − γ^d)/(1 − γ), the discounted value of a path of cost d; 1/(1 − γ) for d = ∞.

    >>> discounted(np.array([0.0, 1.0, 2.0, np.inf]), 0.5)
    array([0. , 1. , 1.5, 2. ])
    """
    return (1 - gamma**truth) / (1 - gamma)


def undiscount(value: Numbers, gamma: float) -> Numbers:
    """log(1 − (1 − γ)·v) / log γ, the inverse of `discounted`; +∞ for v ≥ 1/(1 − γ).

    It is convex, so it does not preserve the triangle inequality v(x, z) ≤ v(x, y) + v(y, z), and it magnifies errors
    near 1/(1 − γ). To evaluate learned values, discount the truth instead.

    >>> undiscount(np.array([0.0, 1.0, 1.5, 2.0, 3.0]), 0.5)
    array([ 0.,  1.,  2., inf, inf])
    """
    if isinstance(value, Tensor):
        return torch.log(1 / (1 - (1 - gamma) * value).clamp_min(0)) / -math.log(gamma)
    with np.errstate(divide="ignore"):
        return np.log(1 / np.maximum(1 - (1 - gamma) * value, 0)) / -math.log(gamma)
