"""CEM, the cross-entropy method: draw sequences from a Gaussian, and fit it to the cheapest of them, again and again.

    u_k ~ N(μ, diag σ²),    μ ← α μ + (1 − α) mean(elites),    σ ← α σ + (1 − α) std(elites)

The mean is one of the candidates. The plan is the cheapest sequence of all that were seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check, check_count
from jepatlas.planning.noise import coloured_noise
from jepatlas.planning.scoring import Best, evaluate, first_guess

__all__ = ["CEM", "CEMConfig", "cheapest", "check_elites", "refit"]


@dataclass(frozen=True)
class CEMConfig:
    kind: ClassVar[str] = "cem"

    horizon: int = 16
    """Actions of a plan."""
    samples: int = 256
    """Sequences that are tried in each iteration."""
    elites: int = 24
    """How many of them the next Gaussian is fitted to."""
    iterations: int = 8
    """Gaussians that are drawn from."""
    spread: float = 0.5
    """σ to begin with, in half-widths of the box."""
    momentum: float = 0.1
    """α: what is kept of the Gaussian before."""

    def __post_init__(self) -> None:
        check_elites(self.samples, self.elites, self.iterations, self.spread, self.momentum)
        check_count("horizon", self.horizon)

    def build(self, box: ActionBox) -> CEM:
        return CEM(self, box)


@dataclass(frozen=True)
class CEM:
    config: CEMConfig
    box: ActionBox

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        mean = first_guess(info, self.box, config.horizon, warm)
        std = config.spread * self.box.half(mean).expand_as(mean)
        best = Best(mean)
        for _ in range(config.iterations):
            noise = coloured_noise(config.samples, mean, 0.0, generator)
            noise[0] = 0  # the mean itself
            candidates = self.box.clamp(mean[:, None] + std[:, None] * noise)
            costs = evaluate(cost, info, candidates)
            best.offer(candidates, costs)
            mean, std = refit(mean, std, *cheapest(candidates, costs, config.elites), config.momentum)
        best.offer(mean[:, None], evaluate(cost, info, mean[:, None]))
        return best.plan()


def cheapest(candidates: Tensor, costs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The elites and their costs, (b, k, t, a) and (b, k) → (b, e, t, a) and (b, e), cheapest first."""
    least, at = costs.topk(count, dim=1, largest=False)
    rows = torch.arange(len(at), device=at.device)[:, None]
    return candidates[rows, at], least


def refit(mean: Tensor, std: Tensor, elites: Tensor, costs: Tensor, momentum: float) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the elites of finite cost; where there are fewer than two, all stays as it is."""
    valid = costs.isfinite()[:, :, None, None]
    count = valid.sum(1)
    weight = valid / count.clamp(min=1)[:, None]
    new_mean = (weight * elites).sum(1)
    new_std = (weight * (elites - new_mean[:, None]).square()).sum(1).sqrt()
    enough = count >= 2
    mean, std = (
        torch.where(enough, momentum * old + (1 - momentum) * new, old)
        for old, new in ((mean, new_mean), (std, new_std))
    )
    return mean, std


def check_elites(samples: int, elites: int, iterations: int, spread: float, momentum: float) -> None:
    check_count("samples", samples, 2)
    check_count("iterations", iterations)
    if not 2 <= elites <= samples:
        raise InputError(f"elites is {elites}, but it must be at least 2 and at most the {samples} samples.")
    check("spread", spread, 0 < spread < float("inf"), "positive and finite")
    check("momentum", momentum, 0 <= momentum < 1, "in [0, 1)")
