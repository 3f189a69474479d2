"""The cost of imagined futures: roll candidates out, and ask an energy how far they are from the goal.

    J(u) = Σ_{s=1..t} γ^(s−1) · (w · E(h_s, g) + c · ‖u_s‖²) + W · E(h_t, g)

W alone is a terminal cost, w alone a summed one. A term of weight 0 is not computed, so that it cannot be 0 · ∞.
Candidates are rolled out a chunk of rows at a time: the memory in use does not grow with their number, unless
gradients are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError
from jepatlas.planning.checks import check, latents

__all__ = ["LatentCost", "LatentCostConfig", "rolled_costs"]

CHUNK_NUMBERS = 2**20  # rows · times · width of a chunk of imagined latents: 4 MB in float32, which a cache can hold

Distance = Callable[[Tensor, Tensor], Tensor]  # (..., d), (..., d) → (...)
Score = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # start (r, d), goal (r, d), h (r, t, d), u (r, t, a) → (r,)


@dataclass(frozen=True)
class LatentCostConfig:
    stage: float = 0.0
    """w: the weight of the energy after each action."""
    terminal: float = 1.0
    """W: the weight of the energy at the end."""
    discount: float = 1.0
    """γ: what a step later is worth, in (0, 1]."""
    action_penalty: float = 0.0
    """c: the weight of the squared actions."""

    def __post_init__(self) -> None:
        for name in ("stage", "terminal", "action_penalty"):
            weight = getattr(self, name)
            check(name, weight, 0 <= weight < math.inf, "a finite weight, and not negative")
        check("discount", self.discount, 0 < self.discount <= 1, "in (0, 1]")
        if not self.stage and not self.terminal:
            raise InputError("stage and terminal are both 0, so this cost has no goal. Give one of them a weight.")

    def build(self, dynamics: Dynamics, energy: Distance) -> LatentCost:
        return LatentCost(dynamics, energy, self)


@dataclass(frozen=True, eq=False)
class LatentCost:
    """A `Cost`: dynamics imagine, an energy (from where, to where) judges."""

    dynamics: Dynamics
    energy: Distance
    config: LatentCostConfig = field(default_factory=LatentCostConfig)

    def __call__(self, info: Mapping[str, Tensor], actions: Tensor) -> Tensor:
        return rolled_costs(self.dynamics, self._score, info, actions)

    def _score(self, start: Tensor, goal: Tensor, h: Tensor, u: Tensor) -> Tensor:
        config, times = self.config, h.shape[1]
        later = config.discount ** torch.arange(times, dtype=h.dtype, device=h.device)
        total = h.new_zeros(len(h))
        if config.stage:
            energies = self.energy(h, goal[:, None])
            total = total + config.stage * (energies * later).sum(1)
            if config.terminal:
                total = total + config.terminal * energies[:, -1]
        else:
            total = total + config.terminal * self.energy(h[:, -1], goal)
        if config.action_penalty:
            total = total + config.action_penalty * (u.square().sum(-1) * later).sum(1)
        return total


def rolled_costs(
    dynamics: Dynamics, score: Score, info: Mapping[str, Tensor], actions: Tensor, numbers: int = CHUNK_NUMBERS
) -> Tensor:
    """The scores of all candidates' futures, (b, k, t, a) → (b, k)."""
    start, goal = latents(info)
    if actions.ndim != 4 or len(actions) != len(start):
        raise InputError(
            f"Candidates must have the shape (b, k, t, a) with b = {len(start)} starts, "
            f"but {tuple(actions.shape)} was given."
        )
    b, k, t, a = actions.shape
    rows = max(1, numbers // (t * (start.shape[1] + a)))
    each = (end[:, None].expand(b, k, -1).reshape(b * k, -1) for end in (start, goal))
    chunks = zip(*(part.split(rows) for part in (*each, actions.reshape(b * k, t, a))), strict=True)
    return torch.cat([score(h, g, _rollout(dynamics, h, u), u) for h, g, u in chunks]).view(b, k)


def _rollout(dynamics: Dynamics, start: Tensor, actions: Tensor) -> Tensor:
    h = dynamics.rollout(start, actions)
    expected = (*actions.shape[:2], start.shape[1])
    if h.shape != expected:
        raise InputError(
            f"Dynamics must give latents of the width they begin from, here {expected}, but gave {tuple(h.shape)}. "
            "Use the dynamics that were trained with this encoder."
        )
    return h
