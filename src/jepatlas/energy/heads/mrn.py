"""MRN, the metric residual network: a distance plus an asymmetric residual.

    E(x, y) = √( mean_i (f_i(y) − f_i(x))² ) + max_j relu(h_j(y) − h_j(x))

f is the first half of the latent and h the second: the paper's two small networks are the last layers of the encoder
before the head. The paper's asymmetric part has the opposite orientation. E is zero if only h decreases, so it is a
pseudo-quasimetric unless it has a floor. Without the root, as in many implementations, the first part is a squared
distance and E is not a quasimetric.

Reference: "Metric Residual Networks for Sample Efficient Goal-Conditioned Reinforcement Learning".
"""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.energy.energy_configs import MRNConfig
from jepatlas.energy.heads.head import EnergyHead, difference, euclidean, where_finite

__all__ = ["MRN"]


@final
class MRN(EnergyHead):
    """The metric residual network."""

    def __init__(self, width: int, config: MRNConfig | None = None) -> None:
        config = config or MRNConfig()
        if width < 2:
            raise InputError(f"width must be at least 2 for MRN, which splits the latent in halves, not {width}.")
        super().__init__(width, guaranteed_quasimetric=config.root, pseudo=True, symmetric=False, floor=config.floor)
        self.root = config.root
        self.sizes = (width // 2, width - width // 2)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        symmetric, asymmetric = difference(x, y).split(self.sizes, dim=-1)
        if self.root:
            distance = euclidean(symmetric) / math.sqrt(self.sizes[0])
        else:
            distance = where_finite(symmetric, lambda finite: finite.square().mean(-1))
        return distance + torch.relu(asymmetric).max(-1).values
