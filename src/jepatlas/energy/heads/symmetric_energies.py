"""Symmetric energies for comparison.

    L2: ‖x − y‖, a metric      squared L2: ‖x − y‖²      cosine: 1 − x·y / (‖x‖‖y‖)

No symmetric energy can represent one-way pairs. The last two violate the triangle inequality, squared L2 at every
midpoint.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from jepatlas.energy.heads.head import EnergyHead, difference, euclidean, where_finite

__all__ = ["L2", "Cosine", "SquaredL2"]


@final
class L2(EnergyHead):
    """‖x − y‖"""

    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=True, pseudo=False, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return euclidean(difference(x, y))


@final
class SquaredL2(EnergyHead):
    """‖x − y‖²"""

    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=False, pseudo=False, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return where_finite(difference(x, y), lambda delta: delta.square().sum(-1))


@final
class Cosine(EnergyHead):
    """½‖x/‖x‖ − y/‖y‖‖² = 1 − cos(x, y), exactly 0 for identical points. The direction of zero is zero."""

    def __init__(self, width: int) -> None:
        super().__init__(width, guaranteed_quasimetric=False, pseudo=True, symmetric=True)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return (_direction(y) - _direction(x)).square().sum(-1) / 2


def _direction(x: Tensor) -> Tensor:
    """x / ‖x‖. With infinite coordinates only their signs count: the limit as all of them grow at the same rate."""
    infinite = x.isinf()
    x = torch.where(infinite.any(-1, keepdim=True), infinite * x.detach().sign(), x)
    size = x.detach().abs().amax(-1, keepdim=True)
    x = x / torch.where(size == 0, 1.0, size)  # avoids overflow of squares
    length = euclidean(x)[..., None]
    return x / torch.where(length == 0, 1.0, length)
