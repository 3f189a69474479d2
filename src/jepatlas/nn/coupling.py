"""Coupling encoder: the inverse of a coupling mixing, with learned weights.

Each layer keeps one half of the coordinates, a, and inverts the layer of the mixing on the other half, b:
    additive:  b ← b − tanh(V a)
    affine:    b ← (b − tanh(V a)) · exp(−½ tanh(S a))
The additive form preserves volume, so it cannot collapse under any loss, unlike an MLP.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.nn.network_configs import Form

__all__ = ["CouplingEncoder"]


class CouplingEncoder(nn.Module):
    def __init__(self, dim: int, layers: int = 8, form: Form = "additive") -> None:
        super().__init__()
        if dim < 2 or layers < 1:
            raise InputError(f"A coupling encoder needs dim >= 2 and layers >= 1, but these are {dim} and {layers}.")
        if form not in get_args(Form):
            raise InputError(f"form must be 'additive' or 'affine', but is '{form}'.")
        half = dim // 2
        self.sizes = (half, dim - half)
        # Invert the last layer of the mixing first.
        self.order = [layer % 2 for layer in reversed(range(layers))]
        self.shift = nn.ModuleList(self._linear(turn) for turn in self.order)
        self.scale = nn.ModuleList(self._linear(turn) for turn in self.order if form == "affine")

    def _linear(self, turn: int) -> nn.Linear:
        return nn.Linear(self.sizes[turn], self.sizes[1 - turn], bias=False)

    def forward(self, x: Tensor) -> Tensor:
        halves = list(x.split(self.sizes, dim=-1))
        for i, turn in enumerate(self.order):
            kept, moved = halves[turn], halves[1 - turn]
            moved = moved - torch.tanh(self.shift[i](kept))
            if self.scale:
                moved = moved * torch.exp(-0.5 * torch.tanh(self.scale[i](kept)))
            halves[1 - turn] = moved
        return torch.cat(halves, dim=-1)
