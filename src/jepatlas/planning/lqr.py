"""LQR as a planner: the exact optimum of a quadratic cost in a linear world, where no bound is met.

Where the optimal action leaves the box it is clamped, and the feedback goes on from where that leads: a good plan then,
but no longer the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check_count, latents
from jepatlas.planning.quadratic import QuadraticCost
from jepatlas.planning.resting import rest_near
from jepatlas.planning.riccati import Regulator, finite_regulator, infinite_regulator
from jepatlas.planning.scoring import plan_of

__all__ = ["LQR", "LQRConfig"]


@dataclass(frozen=True)
class LQRConfig:
    kind: ClassVar[str] = "lqr"

    horizon: int = 16
    """Actions of a plan."""
    infinite: bool = False
    """Whether the feedback is the one for ever, and not the one for this horizon. It leads to the state nearest to
    the goal at which an action holds the world at rest."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)

    def build(self, box: ActionBox) -> LQR:
        return LQR(self, box)


@dataclass(frozen=True)
class LQR:
    """Takes a `QuadraticCost` of a `LinearSystem`; needs neither noise nor a warm start."""

    config: LQRConfig
    box: ActionBox

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        if not isinstance(cost, QuadraticCost) or not isinstance(cost.dynamics, LinearSystem):
            raise InputError(
                "LQR plans for a QuadraticCost of a LinearSystem alone, but was given "
                f"{type(cost).__name__}. Use another planner, or fit a linear system first."
            )
        start, goal = latents(info)
        target = goal.double().cpu().numpy()
        if self.config.infinite:
            target, hold = rest_near(cost.dynamics, target)
            regulator = infinite_regulator(cost.dynamics, cost.weights, self.config.horizon)
            offsets = -np.repeat(hold[:, None], self.config.horizon, axis=1)
        else:
            regulator = finite_regulator(cost.dynamics, cost.weights, self.config.horizon)
            offsets = regulator.offsets(target)
        return plan_of(cost, info, _actions(regulator, start, target, offsets, self.box))


def _actions(regulator: Regulator, start: Tensor, target: np.ndarray, offsets: np.ndarray, box: ActionBox) -> Tensor:
    """Feedback along the way, (b, t, a), each action within the box."""
    offsets_bta, target_bd = torch.as_tensor(offsets), torch.as_tensor(target)
    h, actions = start.double().cpu(), []
    for s, gain in enumerate(torch.as_tensor(regulator.gains)):
        u = box.clamp(-(h - target_bd) @ gain.T - offsets_bta[:, s])
        h = regulator.system.rollout(h, u[:, None])[:, 0]
        actions.append(u)
    return torch.stack(actions, dim=1).to(start)
