"""Weighted sum of coordinate increases: IQE for chunks without overlapping intervals, and cheaper.

    c_i(u, v) = Σ_j w_ij relu(v_ij − u_ij),  w_ij ≥ 0 learned,    E = α · max_i c_i + (1 − α) · mean_i c_i

Each relu satisfies the triangle inequality, and so do sums and maxima of them. E is zero for all v ≤ u, so it is a
pseudo-quasimetric unless it has a floor.
"""

from __future__ import annotations

import math
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.energy_configs import ReluSumConfig
from jepatlas.energy.heads.head import EnergyHead, MaxMean, chunk_size, difference, where_finite

__all__ = ["ReluSum"]


@final
class ReluSum(EnergyHead):
    """The weighted sum of coordinate increases."""

    def __init__(self, width: int, config: ReluSumConfig | None = None) -> None:
        config = config or ReluSumConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=config.floor)
        self.chunks = (config.chunks, chunk_size("ReluSum", width, config.chunks))
        self.reduce = MaxMean(config.alpha, config.learn_alpha)
        self.raw_weight = nn.Parameter(torch.full((width,), math.log(math.e - 1)))  # softplus of it is 1

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return where_finite(torch.relu(difference(x, y)), self._reduced)

    def _reduced(self, rise: Tensor) -> Tensor:
        return self.reduce((rise * F.softplus(self.raw_weight)).unflatten(-1, self.chunks).sum(-1))
