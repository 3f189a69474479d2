"""PQE-LH, the Poisson quasimetric embedding with the Lebesgue measure and half-lines:

    E(u, v) = Σ_i w_i (1 − exp(−Σ_j relu(v_ij − u_ij))),    w_i ≥ 0 learned.

Each component is a concave function of a quasimetric, which keeps the triangle inequality, and is at most w_i: so
energies are bounded by Σ_i w_i, as discounted ones are. In the paper going down is what costs; here it is going up.
It is zero for any v ≤ u: a pseudo-quasimetric, unless it has a floor. (The paper's other form, PQE-GG, takes the
Gaussian measure and Gaussian shapes; it needs the bivariate normal distribution and is not here.)

Reference: "On the Learning and Learnability of Quasimetrics".
"""

from __future__ import annotations

from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.energy.energy_configs import PQEConfig
from jepatlas.energy.heads.differences import difference
from jepatlas.energy.heads.head import EnergyHead
from jepatlas.energy.heads.reduction import check_chunks

__all__ = ["PQE"]


@final
class PQE(EnergyHead):
    def __init__(self, width: int, config: PQEConfig | None = None) -> None:
        config = config or PQEConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=config.floor)
        self.chunks = (config.chunks, check_chunks("PQE", width, config.chunks))
        weight = torch.full((config.chunks,), config.bound / config.chunks)
        self.raw_weight = nn.Parameter(weight + torch.log(-torch.expm1(-weight)))  # the inverse of softplus

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        rise = torch.relu(difference(x, y)).unflatten(-1, self.chunks).sum(-1)
        return (-torch.expm1(-rise) * F.softplus(self.raw_weight)).sum(-1)
