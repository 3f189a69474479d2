"""The covariance-whitening loss: λ · mean (Cov h − I)² + (1 − λ) · invariance.

"When Does LeJEPA Learn a World Model?" calls this VICReg. It constrains second moments only, which is
enough where the world is Gaussian. The paper's own VICReg is in `vicreg.py`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.objectives.lejepa import invariance
from jepatlas.objectives.objective_configs import CovarianceConfig
from jepatlas.objectives.pairwise import PairObjective

__all__ = ["CovarianceWhitening", "covariance_gap"]


class CovarianceWhitening(PairObjective):
    def __init__(
        self, encoder: nn.Module, config: CovarianceConfig | None = None, projector: nn.Module | None = None
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or CovarianceConfig()

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        align = invariance(h_bd, h_next_bd)
        gap = covariance_gap(torch.cat([h_bd, h_next_bd]))
        weight = self.config.weight
        return Loss((1 - weight) * align + weight * gap, {"invariance": align.detach(), "covariance": gap.detach()})


def covariance_gap(h_bd: Tensor) -> Tensor:
    """mean (Cov h − I)² over all entries. The mean of h is left free, as in the study."""
    _, cov = batch_covariance(h_bd)
    return (cov - torch.eye(len(cov), dtype=cov.dtype, device=cov.device)).square().mean()
