"""Energies to compare with, all of them symmetric: none can say that there is no way back.

    L2: ‖x − y‖, a metric      squared L2: ‖x − y‖²      cosine: 1 − x·y / (‖x‖‖y‖)

The last two break the triangle inequality: squared L2 at every midpoint.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from jepatlas.energy.heads.differences import difference, euclidean, where_finite
from jepatlas.energy.heads.head import EnergyHead

__all__ = ["L2", "Cosine", "SquaredL2"]


@final
class L2(EnergyHead):
    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=True, pseudo=False, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return euclidean(difference(x, y))


@final
class SquaredL2(EnergyHead):
    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=False, pseudo=False, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return where_finite(difference(x, y), lambda delta: delta.square().sum(-1))


@final
class Cosine(EnergyHead):
    """½‖x/‖x‖ − y/‖y‖‖², which is 1 − cos, and exactly 0 for identical points; zero has the direction 0."""

    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=False, pseudo=True, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return (_direction(y) - _direction(x)).square().sum(-1) / 2


def _direction(x: Tensor) -> Tensor:
    """Of infinite coordinates only their signs count: the limit of going there in all of them alike."""
    infinite = x.isinf()
    x = torch.where(infinite.any(-1, keepdim=True), infinite * x.detach().sign(), x)
    size = x.detach().abs().amax(-1, keepdim=True)
    x = x / torch.where(size == 0, 1.0, size)  # the same direction, and no square of it is infinite
    length = euclidean(x)[..., None]
    return x / torch.where(length == 0, 1.0, length)
