"""Value-guided learning: a value of every goal, by an expectile over the steps that were seen.

    L²_τ(u) = |τ − 1[u < 0]| · u²
    u = −r·1[s ≠ g] + γ^c · sg V(s', g) − V(s, g),     V = −E,     r = (1 − γ^c)/(1 − γ)

for a step s → s' of cost c. With costs of one this is the usual −1[s ≠ g] + γ V(s', g) − V(s, g). With τ above ½ better
steps count for more: the fixed point comes near that of the best step, which is not E = d, the cost of the cheapest
path, but the discounted (1 − γ^d)/(1 − γ), for any costs, since (1 − γ^{c+d}) = (1 − γ^c) + γ^c (1 − γ^d).
Pairs without a path go to 1/(1 − γ). So compare what is learned with discounted truth.

With a unit of cost other than one, this is said of E/unit and d/unit. Expectations are plain means over rows, so they
need no exchange between processes, as in `qrl`.
"""

from __future__ import annotations

import copy
import math
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import ExpectileConfig
from jepatlas.energy.learn.embedded import EmbeddedEnergy
from jepatlas.nn.ema import ema_network

__all__ = ["Expectile", "discounted", "expectile_loss", "undiscount"]

Numbers = TypeVar("Numbers", np.ndarray, Tensor)


class Expectile(nn.Module):
    """Train it with `collapse=0`, as `QRL`. Distance or quasi-distance: as the energy's head is."""

    def __init__(self, energy: EmbeddedEnergy, config: ExpectileConfig | None = None, unit: float = 1.0) -> None:
        super().__init__()
        if not 0 < unit < math.inf:
            raise InputError(f"The unit of cost must be positive and finite, but {unit} was given.")
        self.config, self.unit = config or ExpectileConfig(), unit
        energy.scale.fill_(unit)
        self.energy = energy
        self.target = None if self.config.target is None else copy.deepcopy(energy).requires_grad_(False)

    def forward(self, batch: Steps, step: int) -> Loss:
        gamma, cost = self.config.gamma, batch.cost / self.unit
        value = -self.energy(batch.x, batch.goal) / self.unit
        with torch.no_grad():
            ahead = -(self.energy if self.target is None else self.target)(batch.x_next, batch.goal) / self.unit
        on_the_way = (batch.x != batch.goal).any(-1)
        error = -discounted(cost, gamma) * on_the_way + gamma**cost * ahead - value
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
    """L²_τ: a square with weight τ above zero and 1 − τ below."""
    return torch.where(error < 0, 1 - tau, tau) * error.square()


def discounted(truth: Numbers, gamma: float) -> Numbers:
    """(1 − γ^d)/(1 − γ): what the expectile loss learns of a path of cost d; 1/(1 − γ) where there is none.

    >>> discounted(np.array([0.0, 1.0, 2.0, np.inf]), 0.5)
    array([0. , 1. , 1.5, 2. ])
    """
    return (1 - gamma**truth) / (1 - gamma)


def undiscount(value: Numbers, gamma: float) -> Numbers:
    """log(1 − (1 − γ)·v) / log γ: the inverse of `discounted`, +∞ from 1/(1 − γ) on.

    It is convex, so it can break the triangle inequality that learned values satisfy: v(x, z) ≤ v(x, y) + v(y, z)
    does not carry over. It also magnifies errors the more the nearer v is to 1/(1 − γ). To judge what was learned,
    discount the truth instead.

    >>> undiscount(np.array([0.0, 1.0, 1.5, 2.0, 3.0]), 0.5)
    array([ 0.,  1.,  2., inf, inf])
    """
    if isinstance(value, Tensor):
        return torch.log(1 / (1 - (1 - gamma) * value).clamp_min(0)) / -math.log(gamma)
    with np.errstate(divide="ignore"):
        return np.log(1 / np.maximum(1 - (1 - gamma) * value, 0)) / -math.log(gamma)
