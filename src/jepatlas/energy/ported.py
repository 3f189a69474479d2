"""An energy that was learned on one model's latents, used on another's, through the map between them.

    E₂(x, y) = E₁(Mx, My)

Zero at identical points and the triangle inequality survive any M. Distinct points stay apart wherever they were if M
loses no direction of x; else those that differ only in what M loses are at energy 0.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from jepatlas.core.contracts import Energy
from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap

__all__ = ["PortedEnergy"]


class PortedEnergy(nn.Module):
    """`to_source` takes the other model's latents to those that `energy` was learned on."""

    weight: Tensor
    shift: Tensor

    def __init__(self, energy: nn.Module, to_source: LinearMap) -> None:
        super().__init__()
        self.energy, self.to_source = energy, to_source
        raw = to_source.raw_weight
        if not np.isfinite(raw).all():
            raise InputError("The map has entries that are not finite, so nothing can be ported through it.")
        self.injective = bool(np.linalg.matrix_rank(raw) == raw.shape[1])
        self.register_buffer("weight", torch.as_tensor(raw, dtype=torch.float64))
        self.register_buffer("shift", torch.as_tensor(to_source.y_mean - raw @ to_source.x_mean))

    @property
    def guaranteed_quasimetric(self) -> bool:
        return cast(Energy, self.energy).guaranteed_quasimetric

    @property
    def pseudo(self) -> bool:
        return cast(Energy, self.energy).pseudo or not self.injective

    def translate(self, x: Tensor) -> Tensor:
        """In float64, as maps are fitted; back in the precision that was given."""
        if x.shape[-1] != self.weight.shape[1]:
            raise InputError(f"The map takes latents of width {self.weight.shape[1]}, but {x.shape[-1]} was given.")
        return (x.double() @ self.weight.T + self.shift).to(x.dtype)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., d₂), (..., d₂) → (...)"""
        return self.energy(self.translate(x), self.translate(y))

    def all_pairs(self, x: Tensor, y: Tensor, **tiles: Any) -> Tensor:
        """(a, d₂), (b, d₂) → (a, b)"""
        return cast(Any, self.energy).all_pairs(self.translate(x), self.translate(y), **tiles)
