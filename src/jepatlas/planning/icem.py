"""iCEM: the cross-entropy method made to do with few samples.

    noise of colour β over time                          actions that go somewhere
    N_i = max(N γ^−i, 2 · elites)                        fewer samples as the Gaussian narrows
    a share ξ of the elites stays in the race            with the costs they were found to have
    the mean is a candidate in the last iteration        and the cheapest sequence of all is the plan

Between two plans the published method carries over elites, shifted; here the shifted plan itself, as the `warm` start.

Reference: "Sample-efficient Cross-Entropy Method for Real-time Planning".
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
from jepatlas.planning.cem import cheapest, check_elites, refit
from jepatlas.planning.checks import check, check_count
from jepatlas.planning.noise import coloured_noise
from jepatlas.planning.scoring import Best, evaluate, first_guess

__all__ = ["ICEM", "ICEMConfig"]


@dataclass(frozen=True)
class ICEMConfig:
    kind: ClassVar[str] = "icem"

    horizon: int = 16
    """Actions of a plan."""
    samples: int = 128
    """N: sequences that are tried in the first iteration."""
    elites: int = 10
    """How many of them the next Gaussian is fitted to."""
    iterations: int = 6
    """Gaussians that are drawn from."""
    spread: float = 0.5
    """σ to begin with, in half-widths of the box."""
    momentum: float = 0.1
    """α: what is kept of the Gaussian before."""
    colour: float = 2.0
    """β: the noise has the power spectrum 1 / f^β; 0 is white."""
    decay: float = 1.25
    """γ: each iteration has so many times fewer samples."""
    kept: float = 0.3
    """ξ: the share of elites that stay in the race."""

    def __post_init__(self) -> None:
        check_elites(self.samples, self.elites, self.iterations, self.spread, self.momentum)
        check_count("horizon", self.horizon)
        check("colour", self.colour, 0 <= self.colour < float("inf"), "not negative, and finite")
        check("decay", self.decay, 1 <= self.decay < float("inf"), "at least 1, and finite")
        check("kept", self.kept, 0 <= self.kept <= 1, "a share, in [0, 1]")

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

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        mean = first_guess(info, self.box, config.horizon, warm)
        std = config.spread * self.box.half(mean).expand_as(mean)
        best, keep = Best(mean), int(config.kept * config.elites)
        elites, costs = mean[:, :0, None], mean[:, :0, 0]  # none yet
        elites = elites.expand(-1, -1, config.horizon, -1)
        for i in range(config.iterations):
            unperturbed = i in (0, config.iterations - 1)
            fresh = self._draw(mean, std, config.population(i), unperturbed, generator)
            fresh_costs = evaluate(cost, info, fresh)
            best.offer(fresh, fresh_costs)
            pool = torch.cat([elites[:, :keep], fresh], 1), torch.cat([costs[:, :keep], fresh_costs], 1)
            elites, costs = cheapest(*pool, config.elites)
            mean, std = refit(mean, std, elites, costs, config.momentum)
        return best.plan()

    def _draw(self, mean: Tensor, std: Tensor, count: int, unperturbed: bool, generator: Generator) -> Tensor:
        noise = coloured_noise(count, mean, self.config.colour, generator)
        if unperturbed:
            noise[0] = 0
        return self.box.clamp(mean[:, None] + std[:, None] * noise)
