"""Deep norm: an asymmetric norm of y − x, computed by a convex and positively homogeneous network.

    δ = y − x,  h_1 = relu(U_1 δ),  h_l = relu(U_l δ + W_l h_{l−1}) with W_l ≥ 0,
    E = α · max h_L + (1 − α) · mean h_L

A convex N with N(tδ) = t N(δ) for t ≥ 0 satisfies N(δ + ε) ≤ N(δ) + N(ε), the triangle inequality. U_l is
unconstrained, so the orientation is learned. All of U_l δ can be negative, so E is a pseudo-quasimetric without a
floor. Units mix all coordinates, so a coordinate that is infinite at one point only gives E = ∞ in both directions.

Reference: "An Inductive Bias for Distances: Neural Nets that Respect the Triangle Inequality".
"""

from __future__ import annotations

import math
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.energy_configs import DeepNormConfig
from jepatlas.energy.heads.head import EnergyHead, MaxMean, difference, scaled, where_finite

__all__ = ["DeepNorm"]


@final
class DeepNorm(EnergyHead):
    """The deep norm of y − x."""

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
