"""Barlow Twins: the cross-correlation matrix of the embeddings of two crops should be the identity.

    L = Σ_i (1 − C_ii)² + λ Σ_{i≠j} C_ij²,   C_ij = corr(z_i, z'_j) over the joint batch of all processes

As published, correlations standardise each crop separately. In the projector both crops are one batch, so its batch
statistics are pooled (published: per crop).
Reference: "Barlow Twins: Self-Supervised Learning via Redundancy Reduction".
"""

from __future__ import annotations

import torch
from torch import Tensor

from jepatlas.core.distributed import mean_over_processes
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.heads import expander
from jepatlas.objectives.vision.joint_embedding_configs import BarlowTwinsConfig

__all__ = ["BarlowTwins", "cross_correlation"]

EPSILON = 1e-5  # added to variances, as published: constant dimensions have correlation 0


class BarlowTwins(CropObjective):
    def __init__(self, parts: VisionParts, config: BarlowTwinsConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or BarlowTwinsConfig()
        self.projector = expander(parts.dim, self.config.projector)

    def forward(self, batch: Crops, step: int) -> Loss:
        del step
        first, second = self.embed(self.projector, two_crops(batch))
        with torch.autocast(first.device.type, enabled=False):
            squares = (cross_correlation(first, second) - torch.eye(first.shape[1]).to(first)).square()
            invariance = squares.diagonal().sum()
            redundancy = squares.sum() - invariance
        total = invariance + self.config.weight * redundancy
        return Loss(total, {"invariance": invariance.detach(), "redundancy": redundancy.detach()})


def cross_correlation(first_bd: Tensor, second_bd: Tensor) -> Tensor:
    """corr(z_i, z'_j): (d, d)."""
    first, second = _standardise(first_bd), _standardise(second_bd)
    return mean_over_processes(first.T @ second / len(first))


def _standardise(z_bd: Tensor) -> Tensor:
    centred = z_bd - mean_over_processes(z_bd.mean(0))
    return centred * torch.rsqrt(mean_over_processes(centred.square().mean(0)) + EPSILON)
