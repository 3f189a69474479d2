"""The deep norm: an asymmetric norm of y − x, from a network that is convex and positively homogeneous.

    δ = y − x,  h_1 = relu(U_1 δ),  h_l = relu(U_l δ + W_l h_{l−1}) with W_l ≥ 0,
    E = α · max h_L + (1 − α) · mean h_L

A convex N with N(tδ) = t N(δ) for t ≥ 0 obeys N(δ + ε) ≤ N(δ) + N(ε): the triangle inequality. U_l is free, so which
way is up is learned. All of U_l δ may be negative: a pseudo-quasimetric, unless it has a floor. Units are mixed over
all coordinates, so a coordinate that is infinite at one point alone is infinitely far in either direction.

Reference: "An Inductive Bias for Distances: Neural Nets that Respect the Triangle Inequality".
"""

from __future__ import annotations

import math
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.energy_configs import DeepNormConfig
from jepatlas.energy.heads.differences import difference, scaled, where_finite
from jepatlas.energy.heads.head import EnergyHead
from jepatlas.energy.heads.reduction import MaxMean

__all__ = ["DeepNorm"]


@final
class DeepNorm(EnergyHead):
    def __init__(self, width: int, config: DeepNormConfig | None = None) -> None:
        c = config or DeepNormConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=c.floor)
        self.skips = nn.ParameterList(torch.randn(c.units, width) / math.sqrt(width) for _ in range(c.layers))
        self.raw_weights = nn.ParameterList(torch.randn(c.units, c.units) for _ in range(c.layers - 1))
        self.reduce = MaxMean(c.alpha, c.learn_alpha)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return where_finite(difference(x, y), lambda delta: scaled(delta, self._norm))

    def _norm(self, delta: Tensor) -> Tensor:
        h = torch.relu(F.linear(delta, self.skips[0]))
        for skip, raw in zip(list(self.skips)[1:], self.raw_weights, strict=True):
            h = torch.relu(F.linear(delta, skip) + F.linear(h, F.softplus(raw)) / raw.shape[1])
        return self.reduce(h)
