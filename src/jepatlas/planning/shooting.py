"""Random shooting: the cheapest of many sequences drawn uniformly from the action box."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import Best, evaluate, initial_actions

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["Shooting", "ShootingConfig"]


@dataclass(frozen=True)
class ShootingConfig:
    kind: ClassVar[str] = "shooting"

    horizon: int = 16
    """Number of actions in a plan."""
    samples: int = 1024
    """Number of candidate sequences, including the initial guess."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)
        check_count("samples", self.samples)

    def build(self, box: ActionBox) -> Shooting:
        return Shooting(self, box)


@dataclass(frozen=True)
class Shooting:
    config: ShootingConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        with torch.no_grad():
            initial = initial_actions(info, self.box, config.horizon, warm)
            drawn = self.box.uniform((config.samples - 1, config.horizon), generator, initial)
            candidates = torch.cat([initial[:, None], drawn.expand(len(initial), *drawn.shape)], dim=1)
            best = Best(initial)
            best.update(candidates, evaluate(cost, info, candidates))
        return best.plan()
