"""Covariance-whitening loss: λ · mean (Cov h − I)² + (1 − λ) · invariance.

"When Does LeJEPA Learn a World Model?" calls this loss VICReg. It constrains second moments only, which is sufficient
for Gaussian worlds. VICReg as published is in `vicreg.py`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.objectives.lejepa import invariance
from jepatlas.objectives.objective_configs import CovarianceConfig
from jepatlas.objectives.pair_objective import PairObjective

__all__ = ["CovarianceWhitening", "covariance_gap"]


class CovarianceWhitening(PairObjective):
    def __init__(
        self, encoder: nn.Module, config: CovarianceConfig | None = None, projector: nn.Module | None = None
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or CovarianceConfig()

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        alignment = invariance(h_bd, h_next_bd)
        gap = covariance_gap(torch.cat([h_bd, h_next_bd]))
        weight = self.config.weight
        return Loss(
            (1 - weight) * alignment + weight * gap, {"invariance": alignment.detach(), "covariance": gap.detach()}
        )


def covariance_gap(h_bd: Tensor) -> Tensor:
    """mean (Cov h − I)² over all entries. As in the study, the mean of h is not constrained."""
    _, cov = batch_covariance(h_bd)
    return (cov - torch.eye(len(cov), dtype=cov.dtype, device=cov.device)).square().mean()
