"""Mutual teaching: two agents that learn at once, each on its own view, and from each other on shared states.

    alternating   L₁ + L₂ + γ ‖sg(z_j) − W_i z_i‖²     in turn i learns from j, then j from i; W_i fitted once a turn
    cross         L₁ + L₂ + γ ‖z₂ − W z₁‖²             gradients reach both; W fitted at every step

Squares are in units of Σ Var of what is to be told; W is fitted in closed form, and no gradient goes through the fit.
The widths of the agents may differ. References: "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained
World Models", equation 9; "Deep Mutual Learning".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.records import Loss, PairedCrops
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.teaching.running_map import RunningMap
from jepatlas.objectives.teaching.teaching_configs import MutualConfig
from jepatlas.objectives.vision.parts import CropObjective

__all__ = ["MutualTeaching"]


class MutualTeaching(nn.Module):
    """One module that owns both agents; the loop looks at the latents of the first."""

    whose: Tensor

    def __init__(
        self, agents: tuple[CropObjective, CropObjective], dims: tuple[int, int], config: MutualConfig | None = None
    ) -> None:
        super().__init__()
        self.config, self.dims = config or MutualConfig(), dims
        self.first, self.second = agents
        self.there = RunningMap(dims[0], dims[1], self.config.map)
        self.back = RunningMap(dims[1], dims[0], self.config.map) if self.config.method == "alternating" else None
        self.register_buffer("whose", torch.tensor(0))  # turn it is: kept, so that a resumed run knows

    def forward(self, batch: PairedCrops, step: int) -> Loss:
        owns = [agent(crops, step) for agent, crops in zip((self.first, self.second), batch.own, strict=True)]
        mutual = self._cross(batch) if self.config.method == "cross" else self._in_turn(batch)
        terms = {f"{name}_{who}": term for who, own in enumerate(owns, 1) for name, term in own.terms.items()}
        terms |= {"own_1": owns[0].total.detach(), "own_2": owns[1].total.detach(), "mutual": mutual.detach()}
        return Loss(owns[0].total + owns[1].total + self.config.weight * mutual, terms)

    @property
    def maps(self) -> tuple[RunningMap, ...]:
        """From the first agent to the second and, where it is needed, back."""
        return (self.there,) if self.back is None else (self.there, self.back)

    def _cross(self, batch: PairedCrops) -> Tensor:
        z1, z2 = (self._latents(agent, batch) for agent in range(2))
        return _untold(self.there, z1, z2)

    def _in_turn(self, batch: PairedCrops) -> Tensor:
        learner = int(self.whose)
        z = self._latents(learner, batch)
        with torch.no_grad():
            other = self._latents(1 - learner, batch)
        self.maps[1 - learner].watch(other, z)  # for the turn to come
        return _untold(self.maps[learner], z, other)

    def _latents(self, agent: int, batch: PairedCrops) -> Tensor:
        return at_least_float32((self.first, self.second)[agent].encode(batch.shared[agent]))

    def encode(self, x: Tensor) -> Tensor:
        return self.first.encode(x)

    def after_step(self, step: int) -> None:
        self.first.after_step(step)
        self.second.after_step(step)
        for through in self.maps:
            through.after_step(step)
        self.whose.fill_((step + 1) // self.config.turn % 2)

    def smallest_batch(self, dim: int) -> int:
        del dim
        return max(self.first.smallest_batch(self.dims[0]), self.second.smallest_batch(self.dims[1]))


def _untold(through: RunningMap, x: Tensor, y: Tensor) -> Tensor:
    through.watch(x, y)
    with torch.autocast(x.device.type, enabled=False):
        return through(x, y)
