"""MRN, the metric residual network: a distance and, added to it, what it costs to go up.

    E(x, y) = √( mean_i (f_i(y) − f_i(x))² ) + max_j relu(h_j(y) − h_j(x))

f is the first half of the latent and h the second: the paper's two small networks are the last layers of the encoder
in front. The paper has the asymmetric part in the other direction; here, as in all heads, going up is what costs.
It is zero where h alone goes down: a pseudo-quasimetric, unless it has a floor.
Without the root, which is common in implementations, the first part is a squared distance: not a quasimetric.

Reference: "Metric Residual Networks for Sample Efficient Goal-Conditioned Reinforcement Learning".
"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.energy.energy_configs import MRNConfig
from jepatlas.energy.heads.differences import difference, euclidean, where_finite
from jepatlas.energy.heads.head import EnergyHead

__all__ = ["MRN"]


@final
class MRN(EnergyHead):
    def __init__(self, width: int, config: MRNConfig | None = None) -> None:
        config = config or MRNConfig()
        if width < 2:
            raise InputError(f"MRN halves the latent, so it needs a width of at least 2, but {width} was given.")
        super().__init__(width, guaranteed_quasimetric=config.root, pseudo=True, symmetric=False, floor=config.floor)
        self.root, self.sizes = config.root, (width // 2, width - width // 2)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        symmetric, asymmetric = difference(x, y).split(self.sizes, dim=-1)
        if self.root:
            distance = euclidean(symmetric) / math.sqrt(self.sizes[0])
        else:
            distance = where_finite(symmetric, lambda finite: finite.square().mean(-1))
        return distance + torch.relu(asymmetric).max(-1).values
