"""IE-JEPA: a JEPA with an intrinsic energy on its latents; and the prediction error of a JEPA as an energy.

    joint:     JEPA(x, x') + weight · energy(f(x), f(x'), cost, f(goal))
    separate:  the same, but the gradient of the energy does not reach the encoder f

In separate mode the encoder's gradient equals that without an energy. Clipping by a joint norm would still couple the
two, so turn it off where that matters. A JEPA without trainable parameters is frozen: its loss is not computed, it
stays in evaluation mode, and only the energy learns.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.records import Loss, Steps
from jepatlas.energy.energy_configs import IEJEPAConfig

__all__ = ["IEJEPA", "PredictionError"]


class IEJEPA(nn.Module):
    """Objective on `Steps`. `jepa` is an objective on pairs x, x_next; `objective` is one on steps of latents."""

    # Both are modules that satisfy the `Objective` protocol, which pyright cannot express together.
    def __init__(self, jepa: Any, objective: Any, config: IEJEPAConfig | None = None) -> None:
        super().__init__()
        self.config = config or IEJEPAConfig()
        self.jepa = jepa
        self.objective = objective
        self.frozen = not any(p.requires_grad for p in jepa.parameters())
        self.train(self.training)

    def forward(self, batch: Steps, step: int) -> Loss:
        joint = self.config.mode == "joint" and not self.frozen
        with torch.set_grad_enabled(joint and torch.is_grad_enabled()):
            h, h_next, h_goal = self.jepa.encode(torch.cat([batch.x, batch.x_next, batch.goal])).chunk(3)
        energy: Loss = self.objective(Steps(h, h_next, batch.cost, h_goal), step)
        total = self.config.weight * energy.total
        terms = _prefixed("energy", energy)
        if not self.frozen:
            jepa: Loss = self.jepa(batch, step)
            total = total + jepa.total
            terms = terms | _prefixed("jepa", jepa)
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
        smallest = self.objective.smallest_batch(dim)
        return smallest if self.frozen else max(smallest, self.jepa.smallest_batch(dim))

    def train(self, mode: bool = True) -> IEJEPA:
        super().train(mode)
        if self.frozen:
            self.jepa.eval()
        return self


def _prefixed(name: str, loss: Loss) -> dict[str, Tensor]:
    return {f"{name}/loss": loss.total.detach(), **{f"{name}/{term}": value for term, value in loss.terms.items()}}


class PredictionError(nn.Module):
    """The squared prediction error ‖p(f(x)) − f(y)‖² of a JEPA, often used as the effort of going from x to y.

    It is not an energy: E(x, x) > 0 unless the predictor is the identity, and detours over midpoints can be much
    cheaper than the direct value. It is provided as a control for audits. The predictor defaults to the identity.
    """

    guaranteed_quasimetric = False
    pseudo = True

    def __init__(self, encoder: nn.Module, predictor: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.predictor = nn.Identity() if predictor is None else predictor

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., p), (..., p) → (...)"""
        return (self.predictor(self.encoder(x)) - self.encoder(y)).square().sum(-1)
