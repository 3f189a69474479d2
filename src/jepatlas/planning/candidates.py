"""Candidate action sequences: initial guess, noise, costs, and the best so far.

A candidate whose cost is infinite or NaN never wins. If every candidate of a start has such a cost, its plan is the
initial guess with cost +∞.

Reference for coloured noise: "Sample-efficient Cross-Entropy Method for Real-time Planning".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from jepatlas.core.contracts import Cost
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Plan
from jepatlas.planning.action_box import ActionBox

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["Best", "coloured_noise", "evaluate", "evaluated_plan", "initial_actions", "start_and_goal", "unreachable"]

INFINITE: Final = float("inf")


def start_and_goal(info: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The latents `info["start"]` and `info["goal"]`, (b, d) each."""
    for name in ("start", "goal"):
        if name not in info:
            raise InputError(
                f"info needs the latents 'start' and 'goal', but '{name}' is missing; it has: {', '.join(info)}."
            )
    start, goal = info["start"], info["goal"]
    if start.ndim != 2 or start.shape != goal.shape:
        raise InputError(
            "info['start'] and info['goal'] must have the same shape (b, d), "
            f"but their shapes are {tuple(start.shape)} and {tuple(goal.shape)}."
        )
    return start, goal


def initial_actions(info: Mapping[str, Tensor], box: ActionBox, horizon: int, warm: Tensor | None) -> Tensor:
    """The warm start clamped to the box, or else the centre of the box, (b, t, a)."""
    start, _ = start_and_goal(info)
    shape = (len(start), horizon, box.dim)
    if warm is None:
        return box.centre(start).expand(shape).clone()
    if warm.shape != shape:
        raise InputError(f"warm must have shape (starts, horizon, actions) = {shape}, but it has {tuple(warm.shape)}.")
    return box.clamp(warm.to(start))


def coloured_noise(count: int, like: Tensor, colour: float, generator: Generator) -> Tensor:
    """Gaussian noise with power spectrum 1 / f^β and variance 1 at each time, (k, t, a) for sequences (b, t, a).

    White noise (β = 0) cancels over time; correlated actions (β = 2 is a random walk's spectrum) travel further.
    Frequency 0 has the power of the lowest positive frequency, 1/t.

    All starts of a batch share the noise. The plan of a start is therefore the same in a batch as on its own, but the
    errors of different starts are not independent.
    """
    horizon, dim = like.shape[1:]
    placement = {"generator": generator, "device": generator.device, "dtype": like.dtype}
    if colour == 0 or horizon == 1:
        return torch.randn(count, horizon, dim, **placement).to(like.device)
    scale = _amplitudes(horizon, colour).to(device=generator.device, dtype=like.dtype)
    waves = torch.randn(2, count, dim, len(scale), **placement)
    # The coefficient of frequency 0, and of the Nyquist frequency for even t, is real: it carries all of the power.
    real = [0, -1] if horizon % 2 == 0 else [0]
    waves[0, ..., real] *= math.sqrt(2)
    waves[1, ..., real] = 0
    spectrum = torch.complex(waves[0] * scale, waves[1] * scale)
    return torch.fft.irfft(spectrum, n=horizon).transpose(1, 2).to(like.device)


def _amplitudes(horizon: int, colour: float) -> Tensor:
    """f^(−β/2), scaled so that the signal has variance 1 at each time."""
    frequencies = torch.fft.rfftfreq(horizon, dtype=torch.float64)
    frequencies[0] = frequencies[1]
    raw = frequencies ** (-colour / 2)
    weight = torch.full_like(raw, 4.0)
    weight[0] = 2.0
    if horizon % 2 == 0:
        weight[-1] = 2.0
    return raw * horizon / (weight * raw.square()).sum().sqrt()


def evaluate(cost: Cost, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
    """Costs of candidates, (b, k, t, a) → (b, k), with +∞ instead of NaN and infinite values."""
    costs = cost(info, actions)
    if costs.shape != actions.shape[:2]:
        raise InputError(
            f"A cost of actions with shape (b, k, t, a) = {tuple(actions.shape)} must return shape (b, k), "
            f"but it returned {tuple(costs.shape)}."
        )
    return torch.where(costs.isfinite(), costs, INFINITE)


class Best:
    """The cheapest sequence seen so far for each start; the initial guess until one has a finite cost."""

    def __init__(self, initial: Tensor) -> None:
        self.actions = initial
        self.cost = initial.new_full((len(initial),), INFINITE)

    def update(self, actions: Tensor, cost: Tensor) -> None:
        """Compare with candidates (b, k, t, a) of costs (b, k)."""
        least, at = cost.detach().min(dim=1)
        cheapest = actions.detach()[torch.arange(len(at), device=at.device), at]
        better = least < self.cost
        self.actions = torch.where(better[:, None, None], cheapest, self.actions)
        self.cost = torch.where(better, least.to(self.cost), self.cost)

    def plan(self) -> Plan:
        return Plan(self.actions, self.cost)


def evaluated_plan(cost: Cost, info: Mapping[str, Tensor], actions: Tensor) -> Plan:
    """The plan of one sequence per start, (b, t, a), with its cost."""
    return Plan(actions, evaluate(cost, info, actions[:, None])[:, 0])


def unreachable(plan: Plan) -> tuple[int, ...]:
    """Indices of the starts for which no sequence with a finite cost was found.

    >>> unreachable(Plan(torch.zeros(3, 5, 2), torch.tensor([1.0, float("inf"), 2.0])))
    (1,)
    """
    return tuple(int(row) for row in plan.cost.isinf().nonzero())
