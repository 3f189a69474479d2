"""Energies composed with a map: an embedding network, or a linear map from the latents of another model.

    E(x, y) = scale · head(φ(x), φ(y)) + floor · ‖x − y‖        EmbeddedEnergy
    E₂(x, y) = E₁(Mx, My)                                       PortedEnergy

Zero at identical points and the triangle inequality are preserved by any map, by positive factors and by adding a
metric. So both are quasimetrics by construction if the head or E₁ is one, for any φ that maps each row by itself (in
evaluation mode). Distinct points can be at energy 0 if the map merges them.
"""

from __future__ import annotations

from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.contracts import Energy
from jepatlas.core.errors import InputError, check_not_negative
from jepatlas.core.linear_map import LinearMap

__all__ = ["EmbeddedEnergy", "PortedEnergy"]

TILE = 65536  # pairs compared at once


@runtime_checkable
class _HasAllPairs(Protocol):
    def all_pairs(self, x: Tensor, y: Tensor, /) -> Tensor: ...


class EmbeddedEnergy(nn.Module):
    """An energy on observations. `head` is any module that is an `Energy`, including another embedded energy."""

    scale: Tensor  # (), one until the energy is calibrated

    def __init__(self, head: nn.Module, embedding: nn.Module | None = None, floor: float = 0.0) -> None:
        super().__init__()
        check_not_negative("floor", floor)
        self.head = head
        self.floor = floor
        self.embedding = nn.Identity() if embedding is None else embedding
        self.register_buffer("scale", torch.ones(()))

    @property
    def guaranteed_quasimetric(self) -> bool:
        return cast(Energy, self.head).guaranteed_quasimetric

    @property
    def pseudo(self) -> bool:
        """Whether distinct points may be at energy 0: true without a floor, since an embedding may merge points."""
        separates = isinstance(self.embedding, nn.Identity) and not cast(Energy, self.head).pseudo
        return self.floor == 0 and not separates

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., p), (..., p) → (...)"""
        return self.between(self.embed(x), self.embed(y), x, y)

    def embed(self, x: Tensor) -> Tensor:
        """φ(x) for any leading dimensions, at least in float32: energies are differences of nearly equal numbers."""
        u = self.embedding(x.reshape(-1, x.shape[-1]))
        return u.to(torch.promote_types(u.dtype, torch.float32)).reshape(*x.shape[:-1], u.shape[-1])

    def between(self, u: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """E(x, y), given u = φ(x) and v = φ(y)."""
        with torch.autocast(u.device.type, enabled=False):
            return self._add_floor(self.scale * self.head(u, v), x, y)

    @torch.no_grad()
    def all_pairs(self, x: Tensor, y: Tensor, tile: int = TILE) -> Tensor:
        """E(x_i, y_j) for all i and j, about `tile` pairs at a time: (a, p), (b, p) → (a, b)."""
        u, v = self.embed(x), self.embed(y)
        columns = max(1, min(len(y), tile))
        rows = max(1, tile // columns)
        result = []
        for u_rows, x_rows in zip(u.split(rows), x.split(rows), strict=True):
            row_tiles = zip(v.split(columns), y.split(columns), strict=True)
            result.append(torch.cat([self._tile(u_rows, v_tile, x_rows, y_tile) for v_tile, y_tile in row_tiles], 1))
        return torch.cat(result)

    def _tile(self, u: Tensor, v: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """All pairs of one tile, by the head's own `all_pairs` if it has one, which needs less memory."""
        if not isinstance(self.head, _HasAllPairs):
            return self.between(u[:, None], v[None], x[:, None], y[None])
        return self._add_floor(self.scale * self.head.all_pairs(u, v), x[:, None], y[None])

    def _add_floor(self, energy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return energy + self.floor * (x - y).norm(dim=-1) if self.floor else energy


class PortedEnergy(nn.Module):
    """An energy learned on the latents of one model, evaluated on those of another.

    `to_source` maps the latents of the other model to those that `energy` was learned on.
    """

    weight: Tensor
    shift: Tensor

    def __init__(self, energy: nn.Module, to_source: LinearMap) -> None:
        super().__init__()
        self.energy = energy
        self.to_source = to_source
        raw = to_source.raw_weight
        if not np.isfinite(raw).all():
            raise InputError("to_source must be finite, but its weight holds NaN or infinite values.")
        self.injective = bool(np.linalg.matrix_rank(raw) == raw.shape[1])
        self.register_buffer("weight", torch.as_tensor(raw, dtype=torch.float64))
        self.register_buffer("shift", torch.as_tensor(to_source.y_mean - raw @ to_source.x_mean))

    @property
    def guaranteed_quasimetric(self) -> bool:
        return cast(Energy, self.energy).guaranteed_quasimetric

    @property
    def pseudo(self) -> bool:
        """Whether distinct points may be at energy 0: true if the map is not injective."""
        return cast(Energy, self.energy).pseudo or not self.injective

    def translate(self, x: Tensor) -> Tensor:
        """The map, computed in float64; the result has the dtype of x."""
        if x.shape[-1] != self.weight.shape[1]:
            raise InputError(f"The map takes latents of width {self.weight.shape[1]}, but {x.shape[-1]} was given.")
        return (x.double() @ self.weight.T + self.shift).to(x.dtype)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., d₂), (..., d₂) → (...)"""
        return self.energy(self.translate(x), self.translate(y))

    def all_pairs(self, x: Tensor, y: Tensor, **tiles: int) -> Tensor:
        """(a, d₂), (b, d₂) → (a, b)"""
        return cast(Any, self.energy).all_pairs(self.translate(x), self.translate(y), **tiles)
