"""Quasimetric learning from steps: push all pairs apart, but no step beyond its cost.

    maximise    E[φ(d(s, g))],   φ(d) = −softplus_β(offset − d) = −log(1 + e^{β(offset − d)}) / β
    subject to  E[relu(d(s, s') − cost)²] ≤ ε²

The largest quasimetric that no observed step exceeds is the cost of the cheapest path. φ flattens beyond the offset,
where pairs without a path would otherwise be pushed to infinity. The bound is kept by a learned multiplier.

Offset, β and ε are counted in units of a typical step's cost. Expectations are plain means over rows, in which the
loss is linear: so the mean of the processes' losses is the loss of the joint batch, without any exchange of ours.

Reference: "Optimal Goal-Reaching Reinforcement Learning via Quasimetric Learning".
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import QRLConfig
from jepatlas.energy.learn.embedded import EmbeddedEnergy
from jepatlas.energy.learn.multiplier import Multiplier

__all__ = ["QRL", "excess", "shortfall"]


class QRL(nn.Module):
    """Train it with `collapse=0`: an embedding wider than the states has flat directions by right."""

    def __init__(self, energy: EmbeddedEnergy, config: QRLConfig | None = None, unit: float = 1.0) -> None:
        super().__init__()
        if not 0 < unit < math.inf:
            raise InputError(f"The unit of cost must be positive and finite, but {unit} was given.")
        self.energy, self.config, self.unit = energy, config or QRLConfig(), unit
        energy.scale.fill_(unit)  # so the head works with numbers about one, whatever costs are counted in
        self.multiplier = Multiplier(self.config.multiplier, self.config.multiplier_rate)

    def forward(self, batch: Steps, step: int) -> Loss:
        near, far = step_and_goal_energies(self.energy, batch)
        push = shortfall(far / self.unit, self.config.offset, self.config.beta).mean()
        over = excess(near / self.unit, batch.cost / self.unit).mean()
        weight = self.multiplier()
        terms = {"push": push.detach(), "excess": over.detach(), "multiplier": weight.detach()}
        return Loss(push + weight * (over - self.config.epsilon**2), terms)

    def encode(self, x: Tensor) -> Tensor:
        return self.energy.embed(x)

    def after_step(self, step: int) -> None:
        """Nothing: the multiplier is a parameter like any other."""

    def smallest_batch(self, dim: int) -> int:
        return 1


def shortfall(d: Tensor, offset: float, beta: float) -> Tensor:
    """−φ(d) = log(1 + e^{β(offset − d)}) / β: how much is missing to the offset, softly."""
    return F.softplus(offset - d, beta)


def excess(d: Tensor, cost: Tensor) -> Tensor:
    """relu(d − cost)²"""
    return (d - cost).relu().square()


def step_and_goal_energies(energy: EmbeddedEnergy, batch: Steps) -> tuple[Tensor, Tensor]:
    """E(x, x') and E(state, goal), with one pass of the embedding.

    States are x and x' in turn: where an episode ends for good, as in a hole, no step begins, and pairs from there
    would never be pushed apart.
    """
    u, u_next, u_goal = energy.embed(torch.cat([batch.x, batch.x_next, batch.goal])).chunk(3)
    arrived = (torch.arange(len(u), device=u.device) % 2 == 1)[:, None]
    state, x = torch.where(arrived, u_next, u), torch.where(arrived, batch.x_next, batch.x)
    return energy.between(u, u_next, batch.x, batch.x_next), energy.between(state, u_goal, x, batch.goal)
