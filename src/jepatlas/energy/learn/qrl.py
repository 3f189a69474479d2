"""Quasimetric learning from steps: maximise all energies while no step exceeds its cost.

    maximise    E[φ(d(s, g))],   φ(d) = −softplus_β(offset − d) = −log(1 + e^{β(offset − d)}) / β
    subject to  E[relu(d(s, s') − cost)²] ≤ ε²

The largest quasimetric that no observed step exceeds is the cost of the cheapest path. φ saturates beyond the offset,
so that pairs without a path do not diverge. The constraint is enforced by a learned Lagrange multiplier λ:

    max over λ ≥ 0, min over θ:   f(θ) + λ · (g(θ) − ε²),     λ = softplus(rate · p)

Offset, β and ε are in units of a typical step's cost. Expectations are plain means over rows and the loss is linear in
them, so the mean of the losses of several processes is the loss of the joint batch.

Reference: "Optimal Goal-Reaching Reinforcement Learning via Quasimetric Learning".
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.errors import check_positive
from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import QRLConfig
from jepatlas.energy.learn.embedded import EmbeddedEnergy

__all__ = ["QRL", "Multiplier", "excess", "shortfall"]


class QRL(nn.Module):
    """Objective on `Steps`. Train it with `collapse=0`: an embedding wider than the states may have flat directions."""

    def __init__(self, energy: EmbeddedEnergy, config: QRLConfig | None = None, unit: float = 1.0) -> None:
        super().__init__()
        check_positive("unit", unit)
        self.energy = energy
        self.config = config or QRLConfig()
        self.unit = unit
        energy.scale.fill_(unit)  # keeps the outputs of the head near 1 for any unit of cost
        self.multiplier = Multiplier(self.config.multiplier, self.config.multiplier_rate)

    def forward(self, batch: Steps, step: int) -> Loss:
        near, far = _step_and_goal_energies(self.energy, batch)
        push = shortfall(far / self.unit, self.config.offset, self.config.beta).mean()
        over = excess(near / self.unit, batch.cost / self.unit).mean()
        weight = self.multiplier()
        terms = {"push": push.detach(), "excess": over.detach(), "multiplier": weight.detach()}
        return Loss(push + weight * (over - self.config.epsilon**2), terms)

    def encode(self, x: Tensor) -> Tensor:
        return self.energy.embed(x)

    def after_step(self, step: int) -> None:
        """Does nothing: the multiplier is a parameter."""

    def smallest_batch(self, dim: int) -> int:
        return 1


class Multiplier(nn.Module):
    """A Lagrange multiplier that ascends while other parameters descend, with one backward pass and one optimiser.

    Its gradient is negated in the backward pass. Adam normalises gradients, so a factor on the gradient would not
    change the speed of λ; a factor on the parameter does: with raw = rate · p, a step of lr in p is one of rate · lr in
    raw. p gets the gradient of raw, so that gradient clipping does not depend on the rate.

    `first` is the initial λ and `rate` its learning rate relative to that of the other parameters.
    """

    def __init__(self, first: float, rate: float) -> None:
        super().__init__()
        self.rate = rate
        raw = math.log(math.expm1(first))  # softplus(raw) = first
        self.parameter = nn.Parameter(torch.tensor([raw / rate]))  # a vector, since sharding does not support scalars

    def forward(self) -> Tensor:
        return F.softplus(cast(Tensor, _Ascent.apply(self.parameter, self.rate))).squeeze(0)


class _Ascent(torch.autograd.Function):
    """rate · p in the forward pass; the negated gradient, without the rate, in the backward pass."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, rate: float) -> Tensor:
        return rate * parameter

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return -grads[0], None


def shortfall(d: Tensor, offset: float, beta: float) -> Tensor:
    """−φ(d) = log(1 + e^{β(offset − d)}) / β: a smooth version of relu(offset − d)."""
    return F.softplus(offset - d, beta)


def excess(d: Tensor, cost: Tensor) -> Tensor:
    """relu(d − cost)²"""
    return (d - cost).relu().square()


def _step_and_goal_energies(energy: EmbeddedEnergy, batch: Steps) -> tuple[Tensor, Tensor]:
    """E(x, x') and E(state, goal), with one pass of the embedding.

    States alternate between x and x'. No step starts from a terminal state, so with x alone pairs that start there
    would never be pushed apart.
    """
    u, u_next, u_goal = energy.embed(torch.cat([batch.x, batch.x_next, batch.goal])).chunk(3)
    use_next = (torch.arange(len(u), device=u.device) % 2 == 1)[:, None]
    state = torch.where(use_next, u_next, u)
    x = torch.where(use_next, batch.x_next, batch.x)
    return energy.between(u, u_next, batch.x, batch.x_next), energy.between(state, u_goal, x, batch.goal)
