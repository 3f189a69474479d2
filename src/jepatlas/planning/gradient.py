"""Planning by gradient: Adam on the actions, through dynamics and energy, from several beginnings at once.

Bounds by clamping after each step, or by u = centre + half · tanh(v), with the descent in v. The plan is the cheapest
sequence on the way of all restarts, so a step that goes wrong costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from jepatlas.core.config import check_literals
from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.records import Plan
from jepatlas.planning.bounds import ActionBox
from jepatlas.planning.checks import check, check_count
from jepatlas.planning.noise import coloured_noise
from jepatlas.planning.scoring import Best, evaluate, first_guess

__all__ = ["Adam", "Gradient", "GradientConfig"]

INSIDE = 0.99  # of the half-width: where tanh's inverse may begin, for at the walls it is infinite


@dataclass(frozen=True)
class GradientConfig:
    kind: ClassVar[str] = "gradient"

    horizon: int = 16
    """Actions of a plan."""
    steps: int = 60
    """Steps of Adam."""
    rate: float = 0.05
    """Its learning rate, in half-widths of the box."""
    restarts: int = 4
    """Sequences that descend, the first guess among them."""
    spread: float = 0.5
    """σ of the noise on the others, in half-widths of the box."""
    bounds: Literal["clamp", "tanh"] = "clamp"
    """How actions are kept within the box."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("horizon", "steps", "restarts"):
            check_count(name, getattr(self, name))
        for name in ("rate", "spread"):
            value = getattr(self, name)
            check(name, value, 0 < value < float("inf"), "positive and finite")

    def build(self, box: ActionBox) -> Gradient:
        return Gradient(self, box)


@dataclass(frozen=True)
class Gradient:
    config: GradientConfig
    box: ActionBox

    def __call__(
        self, cost: Cost, info: Mapping[str, Tensor], generator: Generator, warm: Tensor | None = None
    ) -> Plan:
        config = self.config
        first = first_guess(info, self.box, config.horizon, warm)
        best, free, adam = Best(first), self._beginnings(first, generator), Adam(config.rate)
        for _ in range(config.steps):
            with torch.enable_grad():
                free.requires_grad_()
                actions = self._actions(free)
                costs = evaluate(cost, info, actions)
                slope = _slope(costs, free)
            best.offer(self.box.clamp(actions), costs)
            free = free.detach() - adam(slope)
            free = free.clamp(-1, 1) if config.bounds == "clamp" else free
        with torch.no_grad():  # the first guess itself, too: tanh began a little inside of it
            last = torch.cat([first[:, None], self.box.clamp(self._actions(free))], dim=1)
            best.offer(last, evaluate(cost, info, last))
        return best.plan()

    def _beginnings(self, first: Tensor, generator: Generator) -> Tensor:
        """(b, k, t, a), in half-widths from the centre, or what tanh makes these of."""
        config = self.config
        noise = coloured_noise(config.restarts, first, 0.0, generator)
        noise[0] = 0
        share = (first - self.box.centre(first)) / self.box.half(first)
        share = (share[:, None] + config.spread * noise).clamp(-1, 1)
        return (torch.atanh(INSIDE * share) if config.bounds == "tanh" else share).detach()

    def _actions(self, free: Tensor) -> Tensor:
        share = torch.tanh(free) if self.config.bounds == "tanh" else free
        # not clamped: rounding may lead over the wall by a bit, and a clamp would have no gradient to come back by
        return self.box.centre(free) + self.box.half(free) * share


class Adam:
    """The step for each slope, with the usual β = (0.9, 0.999); torch's own would take longer than a small rollout."""

    def __init__(self, rate: float) -> None:
        self.rate, self.steps = rate, 0
        self.mean, self.square = torch.zeros(()), torch.zeros(())

    def __call__(self, slope: Tensor) -> Tensor:
        self.steps += 1
        self.mean = torch.lerp(slope, self.mean.to(slope).expand_as(slope), 0.9)
        self.square = torch.lerp(slope.square(), self.square.to(slope).expand_as(slope), 0.999)
        size = (self.square / (1 - 0.999**self.steps)).sqrt() + 1e-8
        return self.rate * self.mean / (1 - 0.9**self.steps) / size


def _slope(costs: Tensor, free: Tensor) -> Tensor:
    """Of each sequence's cost by its own actions; zero where that is not finite."""
    if not costs.requires_grad:
        raise InputError("This cost has no gradient by the actions. Use a planner that samples: cem, icem or mppi.")
    (slope,) = torch.autograd.grad(torch.where(costs.isfinite(), costs, 0.0).sum(), free)
    return slope.nan_to_num(0.0, 0.0, 0.0)
