"""PQE-LH, the Poisson quasimetric embedding with the Lebesgue measure and half-lines.

    E(u, v) = Σ_i w_i (1 − exp(−Σ_j relu(v_ij − u_ij))),    w_i ≥ 0 learned

Each component is a concave function of a quasimetric, which preserves the triangle inequality, and is at most w_i, so
energies are bounded by Σ_i w_i like discounted values. The paper has the opposite orientation. E is zero for all v ≤ u,
so it is a pseudo-quasimetric unless it has a floor. PQE-GG, which needs the bivariate normal distribution, is not
implemented.

Reference: "On the Learning and Learnability of Quasimetrics".
"""

from __future__ import annotations

from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.energy_configs import PQEConfig
from jepatlas.energy.heads.head import EnergyHead, chunk_size, difference

__all__ = ["PQE"]


@final
class PQE(EnergyHead):
    """The Poisson quasimetric embedding."""

    def __init__(self, width: int, config: PQEConfig | None = None) -> None:
        config = config or PQEConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=config.floor)
        self.chunks = (config.chunks, chunk_size("PQE", width, config.chunks))
        weight = torch.full((config.chunks,), config.bound / config.chunks)
        self.raw_weight = nn.Parameter(weight + torch.log(-torch.expm1(-weight)))  # inverse of softplus

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        rise = torch.relu(difference(x, y)).unflatten(-1, self.chunks).sum(-1)
        return (-torch.expm1(-rise) * F.softplus(self.raw_weight)).sum(-1)
