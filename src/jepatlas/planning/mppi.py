"""Model predictive path integral control (MPPI): the mean of sequences, weighted by their costs.

    u_k = clamp(μ + σ ε_k),    w_k ∝ exp(−(J_k − min J) / λ),    μ ← Σ_k w_k u_k

The temperature λ is in units of the cost, or, if `relative`, in standard deviations of the finite costs. The published
update also penalises leaving the mean by λ μᵀΣ⁻¹ε; here action penalties belong to the cost. The plan is the mean, or,
where the mean costs +∞ (between two ways around a wall, for example), the cheapest sequence seen.

Reference: "Information Theoretic MPC for Model-Based Reinforcement Learning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import check_argument, check_count, check_not_negative, check_positive
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import Best, coloured_noise, evaluate, evaluated_plan, initial_actions

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["MPPI", "MPPIConfig", "path_weights"]


@dataclass(frozen=True)
class MPPIConfig:
    kind: ClassVar[str] = "mppi"

    horizon: int = 16
    """Number of actions in a plan."""
    samples: int = 512
    """Number of candidate sequences per iteration."""
    iterations: int = 6
    """Number of updates of the mean."""
    spread: float = 0.5
    """σ of the noise in the first iteration, in half-widths of the action box."""
    narrowing: float = 0.8
    """Factor applied to σ after each iteration, in (0, 1]; the published method uses 1."""
    temperature: float = 0.1
    """λ: lower values give more weight to the cheapest sequences."""
    relative: bool = True
    """Whether λ is in standard deviations of the costs, rather than in units of the cost."""
    colour: float = 0.0
    """β: the noise has the power spectrum 1 / f^β; 0 is white noise, 2 is smooth."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)
        check_count("samples", self.samples, 2)
        check_count("iterations", self.iterations)
        for name in ("spread", "temperature"):
            check_positive(name, getattr(self, name))
        check_argument("narrowing", self.narrowing, 0 < self.narrowing <= 1, "in (0, 1]")
        check_not_negative("colour", self.colour)

    def build(self, box: ActionBox) -> MPPI:
        return MPPI(self, box)


@dataclass(frozen=True)
class MPPI:
    config: MPPIConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        with torch.no_grad():
            mean = initial_actions(info, self.box, config.horizon, warm)
            std = config.spread * self.box.half(mean)
            best = Best(mean)
            for i in range(config.iterations):
                noise = coloured_noise(config.samples, mean, config.colour, generator)
                noise[0] = 0  # the mean itself is a candidate
                candidates = self.box.clamp(mean[:, None] + std * config.narrowing**i * noise)
                costs = evaluate(cost, info, candidates)
                best.update(candidates, costs)
                mean = _weighted_mean(mean, candidates, path_weights(costs, config.temperature, config.relative))
            plan = evaluated_plan(cost, info, mean)
        infinite = plan.cost.isinf()
        actions = torch.where(infinite[:, None, None], best.actions, mean)
        return Plan(actions, torch.where(infinite, best.cost, plan.cost))


def path_weights(costs: Tensor, temperature: float, relative: bool) -> Tensor:
    """w_k, (b, k) → (b, k); a row sums to 1, or to 0 where no cost is finite."""
    finite = costs.isfinite()
    least = costs.amin(1, keepdim=True)
    excess = torch.where(finite, costs - least, 0.0)
    if relative:
        count = finite.sum(1, keepdim=True).clamp(min=1)
        mean = excess.sum(1, keepdim=True) / count
        spread = (torch.where(finite, excess - mean, 0.0).square().sum(1, keepdim=True) / count).sqrt()
        excess = excess / spread.clamp(min=torch.finfo(costs.dtype).tiny)
    weights = torch.where(finite, torch.exp(-excess / temperature), 0.0)
    # The cheapest sequence has weight 1 before normalisation, so the sum is at least 1 unless it is 0.
    return weights / weights.sum(1, keepdim=True).clamp(min=1)


def _weighted_mean(mean: Tensor, candidates: Tensor, weights: Tensor) -> Tensor:
    """Σ_k w_k u_k; the previous mean where all weights are 0."""
    weighted = torch.bmm(weights[:, None], candidates.flatten(2)).view(mean.shape)
    return torch.where(weights.any(1)[:, None, None], weighted, mean)
