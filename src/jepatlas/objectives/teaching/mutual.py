"""Mutual teaching: two agents train at once, each on its own view, and learn from each other on shared states.

    cross         L₁ + L₂ + γ ‖z₂ − W z₁‖²             gradients reach both agents; W fitted at every step
    alternating   L₁ + L₂ + γ ‖sg(z_j) − W_i z_i‖²     i learns from j, then j from i; W_i fitted once per turn

The squared error is divided by the total variance of the target. W is fitted in closed form and receives no gradient.
The widths of the agents may differ. References: "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained
World Models", equation 9; "Deep Mutual Learning".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.records import Loss, PairedCrops
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.teaching.running_map import RunningMap
from jepatlas.objectives.teaching.teaching_configs import MutualConfig
from jepatlas.objectives.vision.crop_objective import CropObjective

__all__ = ["MutualTeaching"]


class MutualTeaching(nn.Module):
    """Owns both agents. `encode`, and with it the health check, uses the first agent."""

    whose: Tensor

    def __init__(
        self, agents: tuple[CropObjective, CropObjective], dims: tuple[int, int], config: MutualConfig | None = None
    ) -> None:
        super().__init__()
        self.config, self.dims = config or MutualConfig(), dims
        self.first, self.second = agents
        self.there = RunningMap(dims[0], dims[1], self.config.map)
        self.back = RunningMap(dims[1], dims[0], self.config.map) if self.config.method == "alternating" else None
        self.register_buffer("whose", torch.tensor(0))  # agent whose turn it is; saved for resuming

    def forward(self, batch: PairedCrops, step: int) -> Loss:
        own_1 = self.first(batch.own[0], step)
        own_2 = self.second(batch.own[1], step)
        mutual = self._cross(batch) if self.config.method == "cross" else self._alternating(batch)
        terms = {f"{name}_1": term for name, term in own_1.terms.items()}
        terms |= {f"{name}_2": term for name, term in own_2.terms.items()}
        terms |= {"own_1": own_1.total.detach(), "own_2": own_2.total.detach(), "mutual": mutual.detach()}
        return Loss(own_1.total + own_2.total + self.config.weight * mutual, terms)

    @property
    def maps(self) -> tuple[RunningMap, ...]:
        """The map from the first agent to the second and, with `alternating`, back."""
        return (self.there,) if self.back is None else (self.there, self.back)

    def _cross(self, batch: PairedCrops) -> Tensor:
        return _map_loss(self.there, self._latents(0, batch), self._latents(1, batch))

    def _alternating(self, batch: PairedCrops) -> Tensor:
        learner = int(self.whose)
        z = self._latents(learner, batch)
        with torch.no_grad():
            other = self._latents(1 - learner, batch)
        self.maps[1 - learner].observe(other, z)  # for the next turn
        return _map_loss(self.maps[learner], z, other)

    def _latents(self, agent: int, batch: PairedCrops) -> Tensor:
        return at_least_float32((self.first, self.second)[agent].encode(batch.shared[agent]))

    def encode(self, x: Tensor) -> Tensor:
        return self.first.encode(x)

    def after_step(self, step: int) -> None:
        self.first.after_step(step)
        self.second.after_step(step)
        for running_map in self.maps:
            running_map.after_step(step)
        self.whose.fill_((step + 1) // self.config.turn % 2)

    def smallest_batch(self, dim: int) -> int:
        del dim
        return max(self.first.smallest_batch(self.dims[0]), self.second.smallest_batch(self.dims[1]))


def _map_loss(running_map: RunningMap, x: Tensor, y: Tensor) -> Tensor:
    running_map.observe(x, y)
    with torch.autocast(x.device.type, enabled=False):
        return running_map(x, y)
