"""MPPI, model predictive path integral control: the mean of sequences, weighted by what they cost.

    u_k = clamp(μ + σ ε_k),    w_k ∝ exp(−(J_k − min J) / λ),    μ ← Σ_k w_k u_k

The temperature λ is in units of the cost, or relative to the standard deviation of the finite costs at hand, which
makes it a number without units. The published update also charges for leaving the mean, λ μᵀΣ⁻¹ε; here what actions
cost is the cost's business. The plan is the mean, or where that costs +∞ (between two ways around a wall, for example)
the cheapest sequence seen.

Reference: "Information Theoretic MPC for Model-Based Reinforcement Learning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check, check_count
from jepatlas.planning.noise import coloured_noise
from jepatlas.planning.scoring import Best, evaluate, first_guess, plan_of

__all__ = ["MPPI", "MPPIConfig", "path_weights"]


@dataclass(frozen=True)
class MPPIConfig:
    kind: ClassVar[str] = "mppi"

    horizon: int = 16
    """Actions of a plan."""
    samples: int = 512
    """Sequences that are tried in each iteration."""
    iterations: int = 6
    """How often the mean is moved."""
    spread: float = 0.5
    """σ of the noise in the first iteration, in half-widths of the box."""
    narrowing: float = 0.8
    """What σ is multiplied by after each iteration, in (0, 1]; the published method leaves it as it is, 1."""
    temperature: float = 0.1
    """λ: the lower, the more the cheapest sequence decides."""
    relative: bool = True
    """Whether λ is in standard deviations of the costs, and not in their units."""
    colour: float = 0.0
    """β: the noise has the power spectrum 1 / f^β; 0 is white, 2 is smooth."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)
        check_count("samples", self.samples, 2)
        check_count("iterations", self.iterations)
        for name in ("spread", "temperature"):
            value = getattr(self, name)
            check(name, value, 0 < value < float("inf"), "positive and finite")
        check("narrowing", self.narrowing, 0 < self.narrowing <= 1, "in (0, 1]")
        check("colour", self.colour, 0 <= self.colour < float("inf"), "not negative, and finite")

    def build(self, box: ActionBox) -> MPPI:
        return MPPI(self, box)


@dataclass(frozen=True)
class MPPI:
    config: MPPIConfig
    box: ActionBox

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        mean = first_guess(info, self.box, config.horizon, warm)
        std = config.spread * self.box.half(mean)
        best = Best(mean)
        for i in range(config.iterations):
            noise = coloured_noise(config.samples, mean, config.colour, generator)
            noise[0] = 0  # the mean itself
            candidates = self.box.clamp(mean[:, None] + std * config.narrowing**i * noise)
            costs = evaluate(cost, info, candidates)
            best.offer(candidates, costs)
            mean = _moved(mean, candidates, path_weights(costs, config.temperature, config.relative))
        plan = plan_of(cost, info, mean)
        lost = plan.cost.isinf()
        return Plan(torch.where(lost[:, None, None], best.actions, mean), torch.where(lost, best.cost, plan.cost))


def path_weights(costs: Tensor, temperature: float, relative: bool) -> Tensor:
    """w, (b, k) → (b, k): they sum to 1, or to 0 where no cost is finite."""
    finite = costs.isfinite()
    least = costs.amin(1, keepdim=True)
    excess = torch.where(finite, costs - least, 0.0)
    if relative:
        count = finite.sum(1, keepdim=True).clamp(min=1)
        mean = excess.sum(1, keepdim=True) / count
        spread = (torch.where(finite, excess - mean, 0.0).square().sum(1, keepdim=True) / count).sqrt()
        excess = excess / spread.clamp(min=torch.finfo(costs.dtype).tiny)
    weights = torch.where(finite, torch.exp(-excess / temperature), 0.0)
    return weights / weights.sum(1, keepdim=True).clamp(min=1)  # the cheapest weighs 1 before, so the sum is never less


def _moved(mean: Tensor, candidates: Tensor, weights: Tensor) -> Tensor:
    found = torch.bmm(weights[:, None], candidates.flatten(2)).view(mean.shape)
    return torch.where(weights.any(1)[:, None, None], found, mean)
