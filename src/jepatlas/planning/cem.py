"""The cross-entropy method (CEM) and its sample-efficient variant iCEM.

CEM draws sequences from a Gaussian and refits it to the elites, the cheapest of them:

    u_k ~ N(μ, diag σ²),    μ ← α μ + (1 − α) mean(elites),    σ ← α σ + (1 − α) std(elites)

The mean is one of the candidates. The plan is the cheapest sequence seen in any iteration.

iCEM needs fewer samples:

    noise with power spectrum 1 / f^β                    correlated actions
    N_i = max(N γ^−i, 2 · elites)                        fewer samples in later iterations
    a share ξ of the elites is kept                      together with their costs
    the mean is a candidate in the first and last iteration

The published iCEM carries shifted elites over to the next plan; here the shifted plan is passed as `warm` instead.

Reference: "Sample-efficient Cross-Entropy Method for Real-time Planning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import (
    InputError,
    check_argument,
    check_count,
    check_not_negative,
    check_positive,
    check_share,
)
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import Best, coloured_noise, evaluate, initial_actions

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["CEM", "ICEM", "CEMConfig", "ICEMConfig", "cheapest", "refit"]


@dataclass(frozen=True)
class CEMConfig:
    kind: ClassVar[str] = "cem"

    horizon: int = 16
    """Number of actions in a plan."""
    samples: int = 256
    """Number of candidate sequences per iteration."""
    elites: int = 24
    """Number of cheapest sequences that the Gaussian is refitted to."""
    iterations: int = 8
    """Number of iterations."""
    spread: float = 0.5
    """Initial σ, in half-widths of the action box."""
    momentum: float = 0.1
    """α: weight of the previous Gaussian in each update, in [0, 1)."""

    def __post_init__(self) -> None:
        _check_elites(self)

    def build(self, box: ActionBox) -> CEM:
        return CEM(self, box)


@dataclass(frozen=True)
class CEM:
    config: CEMConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        with torch.no_grad():
            mean = initial_actions(info, self.box, config.horizon, warm)
            std = config.spread * self.box.half(mean).expand_as(mean)
            best = Best(mean)
            for _ in range(config.iterations):
                noise = coloured_noise(config.samples, mean, 0.0, generator)
                noise[0] = 0  # the mean itself is a candidate
                candidates = self.box.clamp(mean[:, None] + std[:, None] * noise)
                costs = evaluate(cost, info, candidates)
                best.update(candidates, costs)
                elites, elite_costs = cheapest(candidates, costs, config.elites)
                mean, std = refit(mean, std, elites, elite_costs, config.momentum)
            best.update(mean[:, None], evaluate(cost, info, mean[:, None]))
        return best.plan()


@dataclass(frozen=True)
class ICEMConfig:
    kind: ClassVar[str] = "icem"

    horizon: int = 16
    """Number of actions in a plan."""
    samples: int = 128
    """N: number of candidate sequences in the first iteration."""
    elites: int = 10
    """Number of cheapest sequences that the Gaussian is refitted to."""
    iterations: int = 6
    """Number of iterations."""
    spread: float = 0.5
    """Initial σ, in half-widths of the action box."""
    momentum: float = 0.1
    """α: weight of the previous Gaussian in each update, in [0, 1)."""
    colour: float = 2.0
    """β: the noise has the power spectrum 1 / f^β; 0 is white noise."""
    decay: float = 1.25
    """γ: factor by which the number of samples falls in each iteration, at least 1."""
    kept: float = 0.3
    """ξ: share of the elites kept as candidates for the next iteration, in [0, 1]."""

    def __post_init__(self) -> None:
        _check_elites(self)
        check_not_negative("colour", self.colour)
        check_argument("decay", self.decay, 1 <= self.decay < float("inf"), "at least 1 and finite")
        check_share("kept", self.kept)

    def population(self, iteration: int) -> int:
        """
        >>> [ICEMConfig(samples=40, elites=10, decay=2.0).population(i) for i in range(4)]
        [40, 20, 20, 20]
        """
        return max(int(self.samples * self.decay**-iteration), min(2 * self.elites, self.samples))

    def build(self, box: ActionBox) -> ICEM:
        return ICEM(self, box)


@dataclass(frozen=True)
class ICEM:
    config: ICEMConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        with torch.no_grad():
            mean = initial_actions(info, self.box, config.horizon, warm)
            std = config.spread * self.box.half(mean).expand_as(mean)
            best = Best(mean)
            keep = int(config.kept * config.elites)
            elites = mean[:, None][:, :0]
            elite_costs = mean.new_zeros(len(mean), 0)
            for i in range(config.iterations):
                noise = coloured_noise(config.population(i), mean, config.colour, generator)
                if i in (0, config.iterations - 1):
                    noise[0] = 0  # the mean itself is a candidate
                fresh = self.box.clamp(mean[:, None] + std[:, None] * noise)
                fresh_costs = evaluate(cost, info, fresh)
                best.update(fresh, fresh_costs)
                pool = torch.cat([elites[:, :keep], fresh], dim=1)
                pool_costs = torch.cat([elite_costs[:, :keep], fresh_costs], dim=1)
                elites, elite_costs = cheapest(pool, pool_costs, config.elites)
                mean, std = refit(mean, std, elites, elite_costs, config.momentum)
        return best.plan()


def cheapest(candidates: Tensor, costs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The elites and their costs, cheapest first: (b, k, t, a), (b, k) → (b, e, t, a), (b, e)."""
    least, at = costs.topk(count, dim=1, largest=False)
    rows = torch.arange(len(at), device=at.device)[:, None]
    return candidates[rows, at], least


def refit(mean: Tensor, std: Tensor, elites: Tensor, costs: Tensor, momentum: float) -> tuple[Tensor, Tensor]:
    """Update mean and standard deviation from the elites with finite cost; unchanged if there are fewer than two."""
    valid = costs.isfinite()[:, :, None, None]
    count = valid.sum(1)
    weight = valid / count.clamp(min=1)[:, None]
    elite_mean = (weight * elites).sum(1)
    elite_std = (weight * (elites - elite_mean[:, None]).square()).sum(1).sqrt()
    enough = count >= 2
    new_mean = torch.where(enough, momentum * mean + (1 - momentum) * elite_mean, mean)
    new_std = torch.where(enough, momentum * std + (1 - momentum) * elite_std, std)
    return new_mean, new_std


def _check_elites(config: CEMConfig | ICEMConfig) -> None:
    check_count("horizon", config.horizon)
    check_count("samples", config.samples, 2)
    check_count("iterations", config.iterations)
    if not 2 <= config.elites <= config.samples:
        raise InputError(
            f"elites is {config.elites}, but it must be from 2 to the number of samples, {config.samples}."
        )
    check_positive("spread", config.spread)
    check_argument("momentum", config.momentum, 0 <= config.momentum < 1, "in [0, 1)")
