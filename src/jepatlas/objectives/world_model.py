"""World model: an encoder and latent dynamics that predict future latents without reconstruction.

    prediction:  mean over τ = 1 … t of (ĥ_τ − h̄_τ)²,   ĥ = rollout(f(x_0), u_0 … u_{t−1}),   h̄ = f̄(x)
    total:       prediction + shaping(h) + weight · inverse + weight · energy

f̄ is the encoder or its moving average. Collapse of f is prevented by the shaping term (`objectives/shaping.py`), by the
average, or by an energy that is learned on the latents. With "separate", the gradient of the prediction or of the
energy does not reach the encoder.

LeJEPA as a world model combines prediction and SIGReg: "LeWorldModel: Stable End-to-End Joint-Embedding Predictive
Architecture from Pixels". Energies that shape the encoder: "Value-guided action planning with JEPA world models".
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.contracts import Dynamics
from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Steps, Windows
from jepatlas.core.seeding import torch_generator
from jepatlas.nn.ema import ema_network
from jepatlas.objectives.objective_configs import WorldModelConfig
from jepatlas.objectives.pair_objective import EncoderObjective, at_least_float32

__all__ = ["WorldModel", "WorldModelParts"]


@dataclass(frozen=True)
class WorldModelParts:
    """What a recipe provides to build a world model."""

    encoder: nn.Module
    dynamics: nn.Module
    inverse: nn.Module | None = None
    """(b, 2d) → (b, a); required if `config.inverse` is positive."""
    energy: nn.Module | None = None
    """An objective on `Steps` of latents, with an attribute `energy`."""
    seed: int = 0


class WorldModel(EncoderObjective):
    def __init__(self, parts: WorldModelParts, config: WorldModelConfig | None = None) -> None:
        super().__init__()
        self.config, self.seed = config or WorldModelConfig(), parts.seed
        self.encoder, self.dynamics = parts.encoder, parts.dynamics
        self.inverse = parts.inverse if self.config.inverse else None
        self.learned = parts.energy
        if self.config.inverse and parts.inverse is None:
            raise InputError(f"inverse is {self.config.inverse}, but no inverse dynamics network was given.")
        self.target = copy.deepcopy(parts.encoder).requires_grad_(False) if self.config.average is not None else None

    def forward(self, batch: Windows, step: int) -> Loss:
        h = self._latents(self.encoder, batch.frames)
        u = batch.u.to(h.dtype)
        with torch.autocast(h.device.type, enabled=False):
            terms = {"prediction": self._prediction(h, batch, u)}
            if self.config.shaping is not None:
                terms["shaping"] = self.config.shaping.weight * self.config.shaping.term(h, step, self.seed)
            if self.inverse is not None:
                actions = self.inverse(torch.cat([h[:, :-1], h[:, 1:]], -1))
                terms["inverse"] = self.config.inverse * F.mse_loss(actions, u)
            if self.learned is not None:
                terms["energy"] = self.config.energy_weight * self._energy(h, step).total
        total = torch.stack(list(terms.values())).sum()
        return Loss(total, {name: term.detach() for name, term in terms.items()})

    def _prediction(self, h: Tensor, batch: Windows, u: Tensor) -> Tensor:
        start, target = h[:, 0], h[:, 1:]
        if self.target is not None:
            with torch.no_grad():
                target = self._latents(self.target, batch.frames[:, 1:])
        if self.config.prediction == "separate":
            start, target = start.detach(), target.detach()
        return F.mse_loss(cast(Dynamics, self.dynamics).rollout(start, u), target)

    def _energy(self, h: Tensor, step: int) -> Loss:
        """Each step costs one unit of time. Goals are random frames of the batch."""
        h = h if self.config.energy == "joint" else h.detach()
        x, x_next = h[:, :-1].flatten(0, 1), h[:, 1:].flatten(0, 1)
        rows = h.flatten(0, 1)
        goal = torch.randint(len(rows), (len(x),), generator=torch_generator(self.seed, "goals", step)).to(h.device)
        objective = cast(Any, self.learned)
        return objective(Steps(x, x_next, x.new_ones(len(x)), rows[goal]), step)

    @staticmethod
    def _latents(encoder: nn.Module, frames: Tensor) -> Tensor:
        """(b, t, …) → (b, t, d), with all frames as one batch, so that batch statistics are pooled over time."""
        return at_least_float32(encoder(frames.flatten(0, 1))).unflatten(0, frames.shape[:2])

    @property
    def energy(self) -> nn.Module | None:
        """The energy learned on the latents, if any: (b, d), (b, d) → (b,)."""
        return None if self.learned is None else cast(nn.Module, self.learned.energy)

    def after_step(self, step: int) -> None:
        if self.learned is not None:
            cast(Any, self.learned).after_step(step)
        if self.target is not None and self.config.average is not None:
            ema_network(self.target, self.encoder, self.config.average)

    def smallest_batch(self, dim: int) -> int:
        return 2 if self.learned is None else max(2, cast(Any, self.learned).smallest_batch(dim))
