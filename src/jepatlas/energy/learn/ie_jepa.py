"""IE-JEPA: a JEPA, and an intrinsic energy on its latents.

    joint:     JEPA(x, x') + weight · energy(f(x), f(x'), cost, f(goal))
    separate:  the same, but no gradient of the energy reaches the encoder f

Separate, the encoder's gradient is what it would be without an energy; clipping by a joint norm would still couple the
two, so leave it out where that matters. A JEPA none of whose parameters requires a gradient
is frozen: its own loss is not taken, and it stays in evaluation mode, so only the energy learns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import IEJEPAConfig

__all__ = ["IEJEPA"]


class IEJEPA(nn.Module):
    """`jepa` is an objective on pairs x, x_next; `objective` is one on steps, such as `QRL`, of latents."""

    def __init__(self, jepa: Any, objective: Any, config: IEJEPAConfig | None = None) -> None:
        super().__init__()
        self.config = config or IEJEPAConfig()
        self.jepa, self.objective = jepa, objective
        self.frozen = not any(p.requires_grad for p in jepa.parameters())
        self.train(self.training)

    def forward(self, batch: Steps, step: int) -> Loss:
        joint = self.config.mode == "joint" and not self.frozen
        with torch.set_grad_enabled(joint and torch.is_grad_enabled()):
            h, h_next, h_goal = self.jepa.encode(torch.cat([batch.x, batch.x_next, batch.goal])).chunk(3)
        energy: Loss = self.objective(Steps(h, h_next, batch.cost, h_goal), step)
        total = self.config.weight * energy.total
        terms = _named("energy", energy)
        if not self.frozen:
            jepa: Loss = self.jepa(batch, step)
            total, terms = total + jepa.total, terms | _named("jepa", jepa)
        return Loss(total, terms)

    def encode(self, x: Tensor) -> Tensor:
        """The JEPA's latents."""
        return self.jepa.encode(x)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        """E(f(x), f(y)) for rows of observations: (b, p), (b, p) → (b,)"""
        return self.objective.energy(self.encode(x), self.encode(y))

    def after_step(self, step: int) -> None:
        if not self.frozen:
            self.jepa.after_step(step)
        self.objective.after_step(step)

    def smallest_batch(self, dim: int) -> int:
        least = self.objective.smallest_batch(dim)
        return least if self.frozen else max(least, self.jepa.smallest_batch(dim))

    def train(self, mode: bool = True) -> IEJEPA:
        super().train(mode)
        if self.frozen:
            self.jepa.eval()
        return self


def _named(name: str, loss: Loss) -> dict[str, Tensor]:
    return {f"{name}/loss": loss.total.detach(), **{f"{name}/{term}": value for term, value in loss.terms.items()}}
