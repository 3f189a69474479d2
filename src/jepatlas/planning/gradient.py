"""Gradient planner: Adam on the actions, through dynamics and energy, from several initial sequences.

Bounds are kept by clamping after each step, or by u = centre + half · tanh(v) with gradient steps in v. The plan is
the cheapest sequence of all restarts and steps, so a step that increases the cost does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError, check_count, check_positive
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox
from jepatlas.planning.candidates import Best, coloured_noise, evaluate, initial_actions

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["Adam", "Gradient", "GradientConfig"]

TANH_LIMIT = 0.99  # of the half-width: atanh is infinite at the bounds


@dataclass(frozen=True)
class GradientConfig:
    kind: ClassVar[str] = "gradient"

    horizon: int = 16
    """Number of actions in a plan."""
    steps: int = 60
    """Number of Adam steps."""
    rate: float = 0.05
    """Learning rate, in half-widths of the action box."""
    restarts: int = 4
    """Number of sequences that are optimised, including the initial guess."""
    spread: float = 0.5
    """σ of the noise that perturbs the other initial sequences, in half-widths of the action box."""
    bounds: Literal["clamp", "tanh"] = "clamp"
    """How actions are kept inside the box."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("horizon", "steps", "restarts"):
            check_count(name, getattr(self, name))
        for name in ("rate", "spread"):
            check_positive(name, getattr(self, name))

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
        initial = initial_actions(info, self.box, config.horizon, warm)
        best = Best(initial)
        free = self._initial_parameters(initial, generator)
        adam = Adam(config.rate)
        for _ in range(config.steps):
            with torch.enable_grad():
                free.requires_grad_()
                actions = self._actions(free)
                costs = evaluate(cost, info, actions)
                gradient = _gradient(costs, free)
            best.update(self.box.clamp(actions), costs)
            free = free.detach() - adam(gradient)
            if config.bounds == "clamp":
                free = free.clamp(-1, 1)
        with torch.no_grad():
            # The initial guess is included because the tanh parameters start slightly inside of it.
            last = torch.cat([initial[:, None], self.box.clamp(self._actions(free))], dim=1)
            best.update(last, evaluate(cost, info, last))
        return best.plan()

    def _initial_parameters(self, initial: Tensor, generator: Generator) -> Tensor:
        """Offsets from the centre in half-widths, or their atanh, (b, k, t, a)."""
        config = self.config
        noise = coloured_noise(config.restarts, initial, 0.0, generator)
        noise[0] = 0
        share = (initial - self.box.centre(initial)) / self.box.half(initial)
        share = (share[:, None] + config.spread * noise).clamp(-1, 1)
        if config.bounds == "tanh":
            share = torch.atanh(TANH_LIMIT * share)
        return share.detach()

    def _actions(self, free: Tensor) -> Tensor:
        share = torch.tanh(free) if self.config.bounds == "tanh" else free
        # Not clamped: rounding may exceed a bound slightly, and a clamp would have zero gradient there.
        return self.box.centre(free) + self.box.half(free) * share


class Adam:
    """Adam updates with β = (0.9, 0.999); torch's optimiser would take longer than a small rollout."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.steps = 0
        self.mean = torch.zeros(())
        self.square = torch.zeros(())

    def __call__(self, gradient: Tensor) -> Tensor:
        """The update to subtract from the parameters."""
        self.steps += 1
        self.mean = torch.lerp(gradient, self.mean.to(gradient).expand_as(gradient), 0.9)
        self.square = torch.lerp(gradient.square(), self.square.to(gradient).expand_as(gradient), 0.999)
        size = (self.square / (1 - 0.999**self.steps)).sqrt() + 1e-8
        return self.rate * self.mean / (1 - 0.9**self.steps) / size


def _gradient(costs: Tensor, free: Tensor) -> Tensor:
    """The gradient of each sequence's cost with respect to its own actions; 0 where it is not finite."""
    if not costs.requires_grad:
        raise InputError(
            "The cost has no gradient with respect to the actions. Use a sampling planner: cem, icem or mppi."
        )
    (gradient,) = torch.autograd.grad(torch.where(costs.isfinite(), costs, 0.0).sum(), free)
    return gradient.nan_to_num(0.0, 0.0, 0.0)
