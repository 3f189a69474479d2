"""What becomes of a latent under actions: networks that are rolled out in the latent space alone.

    residual:  h_{t+1} = h_t + f(h_t, u_t)
    linear:    h_{t+1} = A h_t + B u_t + c
    gru:       m_0 = W h_0,   m_{t+1} = GRU(u_t, m_t),   h_{t+1} = h_t + V m_{t+1}

A residual starts from "nothing happens", which is nearly right for short steps. The memory of the GRU sees all actions
since the start, so it can carry what a single latent does not show, a velocity for example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.linear_system import LinearSystem
from jepatlas.nn.mlp import mlp

__all__ = [
    "AnyDynamics",
    "GRUDynamics",
    "GRUDynamicsConfig",
    "LinearDynamics",
    "LinearDynamicsConfig",
    "ResidualDynamics",
    "ResidualDynamicsConfig",
]


@dataclass(frozen=True)
class ResidualDynamicsConfig:
    kind: ClassVar[str] = "residual"

    width: int = 256
    """Units in each hidden layer."""
    depth: int = 2
    """Hidden layers."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise InputError(f"Dynamics need width and depth >= 1, but {self.width} and {self.depth} were given.")

    def build(self, dim: int, action_dim: int) -> ResidualDynamics:
        return ResidualDynamics(mlp(dim + action_dim, dim, self.width, self.depth))


@dataclass(frozen=True)
class LinearDynamicsConfig:
    kind: ClassVar[str] = "linear"

    def build(self, dim: int, action_dim: int) -> LinearDynamics:
        return LinearDynamics(dim, action_dim)


@dataclass(frozen=True)
class GRUDynamicsConfig:
    kind: ClassVar[str] = "gru"

    width: int = 256
    """Units of the memory."""

    def __post_init__(self) -> None:
        if self.width < 1:
            raise InputError(f"The memory of a GRU needs at least 1 unit, but {self.width} were given.")

    def build(self, dim: int, action_dim: int) -> GRUDynamics:
        return GRUDynamics(dim, action_dim, self.width)


AnyDynamics = ResidualDynamicsConfig | GRUDynamicsConfig | LinearDynamicsConfig


class _Stepwise(nn.Module):
    """Dynamics whose next latent follows from this one and the action alone."""

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, d), (b, t, a) → (b, t, d)"""
        latents = []
        for u in actions.unbind(1):
            h = self(h, u)
            latents.append(h)
        return torch.stack(latents, 1)


class ResidualDynamics(_Stepwise):
    def __init__(self, change: nn.Module) -> None:
        super().__init__()
        self.change = change

    def forward(self, h: Tensor, u: Tensor) -> Tensor:
        """(b, d), (b, a) → (b, d)"""
        return h + self.change(torch.cat([h, u], -1))


class LinearDynamics(_Stepwise):
    """What an identified latent of a linear world obeys; A and B can be read off and given to a Riccati solver."""

    def __init__(self, dim: int, action_dim: int) -> None:
        super().__init__()
        self.state = nn.Linear(dim, dim)
        self.action = nn.Linear(action_dim, dim, bias=False)
        nn.init.eye_(self.state.weight)
        nn.init.zeros_(self.state.bias)

    def forward(self, h: Tensor, u: Tensor) -> Tensor:
        return self.state(h) + self.action(u)

    def system(self) -> LinearSystem:
        """The trained A, B and c in float64."""
        parts = (self.state.weight, self.action.weight, self.state.bias)
        return LinearSystem(*(part.detach().double().cpu().numpy() for part in parts))


class GRUDynamics(nn.Module):
    def __init__(self, dim: int, action_dim: int, width: int) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(dim, width), nn.Linear(width, dim)
        self.memory = nn.GRU(action_dim, width, batch_first=True)

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        """(b, d), (b, t, a) → (b, t, d)"""
        memories, _ = self.memory(actions, torch.tanh(self.start(h))[None])
        return h[:, None] + self.end(memories).cumsum(1)

    def forward(self, h: Tensor, u: Tensor) -> Tensor:
        return self.rollout(h, u[:, None])[:, 0]
