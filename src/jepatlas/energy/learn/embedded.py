"""An energy on observations: a head on what they are embedded as.

    E(x, y) = scale · head(φ(x), φ(y)) + floor · ‖x − y‖

Zero at identical points and the triangle inequality survive any φ, any positive factor and the sum with a metric: so
E is a quasimetric by construction wherever the head is, for any φ that maps each row by itself (in evaluation mode).
"""

from __future__ import annotations

import math
from typing import Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from jepatlas.core.contracts import Energy
from jepatlas.core.errors import InputError

__all__ = ["EmbeddedEnergy"]

TILE = 65536  # pairs that are compared at once


class EmbeddedEnergy(nn.Module):
    """`head` is any module that is an `Energy`; so an embedded energy can itself be the head of another."""

    scale: Tensor  # (), one until it is calibrated

    def __init__(self, head: nn.Module, embedding: nn.Module | None = None, floor: float = 0.0) -> None:
        super().__init__()
        if not 0 <= floor < math.inf:
            raise InputError(f"The floor c of E ≥ c‖x − y‖ must be finite and not negative, but {floor} was given.")
        self.head, self.floor = head, floor
        self.embedding = nn.Identity() if embedding is None else embedding
        self.register_buffer("scale", torch.ones(()))

    @property
    def guaranteed_quasimetric(self) -> bool:
        return cast(Energy, self.head).guaranteed_quasimetric

    @property
    def pseudo(self) -> bool:
        """Nothing says that an embedding keeps distinct points apart; a floor does."""
        injective = isinstance(self.embedding, nn.Identity) and not cast(Energy, self.head).pseudo
        return self.floor == 0 and not injective

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., p), (..., p) → (...)"""
        return self.between(self.embed(x), self.embed(y), x, y)

    def embed(self, x: Tensor) -> Tensor:
        """φ(x) for any leading dimensions, never in half precision: energies are differences of near-equal numbers."""
        u = self.embedding(x.reshape(-1, x.shape[-1]))
        return u.to(torch.promote_types(u.dtype, torch.float32)).reshape(*x.shape[:-1], u.shape[-1])

    def between(self, u: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """E(x, y) where u = φ(x) and v = φ(y) are known already."""
        with torch.autocast(u.device.type, enabled=False):
            length = self.scale * self.head(u, v)
            return length + self.floor * (x - y).norm(dim=-1) if self.floor else length

    @torch.no_grad()
    def all_pairs(self, x: Tensor, y: Tensor, tile: int = TILE) -> Tensor:
        """E(x_i, y_j) for all i and j, at most about `tile` pairs at once: (a, p), (b, p) → (a, b)."""
        u, v = self.embed(x), self.embed(y)
        wide = max(1, min(len(y), tile))
        high = max(1, tile // wide)
        rows = []
        for a, b in zip(u.split(high), x.split(high), strict=True):
            blocks = [self._block(a, c, b, d) for c, d in zip(v.split(wide), y.split(wide), strict=True)]
            rows.append(torch.cat(blocks, 1))
        return torch.cat(rows)

    def _block(self, u: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Heads that compare two tables in less room than broadcasting takes are let do so."""
        if not isinstance(self.head, _Tables):
            return self.between(u[:, None], v[None], x[:, None], y[None])
        lengths = self.scale * self.head.all_pairs(u, v)
        return lengths + self.floor * (x[:, None] - y[None]).norm(dim=-1) if self.floor else lengths


@runtime_checkable
class _Tables(Protocol):
    def all_pairs(self, x: Tensor, y: Tensor, /) -> Tensor: ...
