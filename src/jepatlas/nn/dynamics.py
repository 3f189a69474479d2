"""Latent dynamics: networks that are rolled out in latent space.

    residual:  h_{t+1} = h_t + f(h_t, u_t)
    linear:    h_{t+1} = A h_t + B u_t + c
    gru:       m_0 = W h_0,   m_{t+1} = GRU(u_t, m_t),   h_{t+1} = h_t + V m_{t+1}

The residual form starts near the identity, which is nearly right for short steps. The state of the GRU depends on all
actions since the start, so it can represent quantities that a single latent does not contain, such as velocities.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.linear_system import LinearSystem

__all__ = [
    "GRUDynamics",
    "LinearDynamics",
    "ResidualDynamics",
]


class _Stepwise(nn.Module):
    """Base of dynamics whose next latent depends only on the current latent and action."""

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
    """Linear dynamics, as of an identified latent of a linear world; `system` returns A, B and c."""

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
