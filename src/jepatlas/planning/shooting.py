"""Random shooting: many sequences from all over the box, and the cheapest of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check_count
from jepatlas.planning.scoring import Best, evaluate, first_guess

__all__ = ["Shooting", "ShootingConfig"]


@dataclass(frozen=True)
class ShootingConfig:
    kind: ClassVar[str] = "shooting"

    horizon: int = 16
    """Actions of a plan."""
    samples: int = 1024
    """Sequences that are tried, the first guess among them."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)
        check_count("samples", self.samples)

    def build(self, box: ActionBox) -> Shooting:
        return Shooting(self, box)


@dataclass(frozen=True)
class Shooting:
    config: ShootingConfig
    box: ActionBox

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        first = first_guess(info, self.box, config.horizon, warm)
        drawn = self.box.uniform((config.samples - 1, config.horizon), generator, first)
        candidates = torch.cat([first[:, None], drawn.expand(len(first), *drawn.shape)], dim=1)
        best = Best(first)
        best.offer(candidates, evaluate(cost, info, candidates))
        return best.plan()
