"""The straight line in latent: waypoints between start and goal, and the actions that come nearest to each in turn.

    w_s = h + (s / t)(g − h)        u_s = argmin_u ‖h(u_1 … u_{s−1}, u) − w_s‖

Where latents are the world's own coordinates, up to a rotation, and nothing is in the way, that is the shortest way.
Each action is found by a search that narrows around the best one so far; what the cost says plays no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import Cost, Dynamics
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check, check_count, latents
from jepatlas.planning.scoring import Best, evaluate, first_guess, plan_of

__all__ = ["StraightLine", "StraightLineConfig", "detour", "waypoints"]


def waypoints(start: Tensor, goal: Tensor, steps: int) -> Tensor:
    """(b, d), (b, d) → (b, steps + 1, d), both ends among them."""
    share = torch.linspace(0, 1, steps + 1, dtype=start.dtype, device=start.device)[:, None]
    return start[:, None] + share * (goal - start)[:, None]


def detour(points: Tensor) -> Tensor:
    """How many times longer a path is than the straight way from its first point to its last, (b, t, d) → (b,).

    >>> detour(torch.tensor([[[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]]))
    tensor([1.4000])
    """
    return points.diff(dim=1).norm(dim=-1).sum(1) / (points[:, -1] - points[:, 0]).norm(dim=-1)


@dataclass(frozen=True)
class StraightLineConfig:
    kind: ClassVar[str] = "straight-line"

    horizon: int = 16
    """Actions of a plan, and pieces of the line."""
    samples: int = 64
    """Actions that are tried in each round."""
    rounds: int = 4
    """Rounds of search for each action; the first is over all of the box."""
    narrowing: float = 0.25
    """How much narrower each round is than the one before, in (0, 1)."""

    def __post_init__(self) -> None:
        for name in ("horizon", "samples", "rounds"):
            check_count(name, getattr(self, name))
        check("narrowing", self.narrowing, 0 < self.narrowing < 1, "between 0 and 1, both excluded")

    def build(self, box: ActionBox) -> StraightLine:
        return StraightLine(self, box)


@dataclass(frozen=True)
class StraightLine:
    """Takes costs that have `dynamics`; a warm start is one more action to try for each waypoint."""

    config: StraightLineConfig
    box: ActionBox

    @torch.no_grad()
    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        dynamics: Dynamics | None = getattr(cost, "dynamics", None)
        if dynamics is None:
            raise InputError(
                f"A straight line is followed through the dynamics of a cost, but {type(cost).__name__} has none. "
                "Give a LatentCost or a QuadraticCost, or use another planner."
            )
        start, goal = latents(info)
        actions = first_guess(info, self.box, self.config.horizon, warm)
        line = waypoints(start, goal, self.config.horizon)
        for s in range(self.config.horizon):
            actions[:, s] = self._towards(
                _Step(dynamics, actions[:, :s], line[:, s + 1]), start, actions[:, s], generator
            )
        return plan_of(cost, info, actions)

    def _towards(self, step: _Step, start: Tensor, first: Tensor, generator: Generator) -> Tensor:
        """The action that comes nearest to the waypoint, (b, a)."""
        config, best = self.config, Best(first[:, None])
        for i in range(config.rounds):
            drawn = self.box.uniform((config.samples,), generator, first)
            near = config.narrowing**i
            around = best.actions + near * (drawn - self.box.centre(first)) if i else drawn.expand(len(first), -1, -1)
            tried = torch.cat([best.actions, self.box.clamp(around)], dim=1)[:, :, None]
            best.offer(tried, evaluate(step, {"start": start}, tried))
        return best.actions[:, 0]


@dataclass(frozen=True, eq=False)
class _Step:
    """The cost of one more action after those that are settled: the distance from its waypoint.

    From the start each time, because dynamics may remember more than the latent shows.
    """

    dynamics: Dynamics
    settled: Tensor  # (b, s, a)
    waypoint: Tensor  # (b, d)

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        b, k = actions.shape[:2]
        before = self.settled[:, None].expand(b, k, -1, -1)
        whole = torch.cat([before, actions], dim=2).flatten(0, 1)
        start = info["start"][:, None].expand(b, k, -1).flatten(0, 1)
        return (self.dynamics.rollout(start, whole)[:, -1].view(b, k, -1) - self.waypoint[:, None]).norm(dim=-1)
