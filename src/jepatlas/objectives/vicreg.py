"""VICReg: invariance, a hinge on standard deviations, and decorrelation.

    λ · mse(h, h') + μ · [v(h) + v(h')] + ν · [c(h) + c(h')]
    v = mean_j relu(γ − √(Var h_j + ε)),   c = (1/d) Σ_{i≠j} Cov(h)²_ij

Some studies give this name to the covariance-whitening loss; see `covariance_whitening.py`.
Reference: "VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning" (Algorithm 1).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.objectives.objective_configs import VICRegConfig
from jepatlas.objectives.pair_objective import PairObjective

__all__ = ["VICReg", "decorrelation", "variance_hinge"]


class VICReg(PairObjective):
    def __init__(
        self, encoder: nn.Module, config: VICRegConfig | None = None, projector: nn.Module | None = None
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or VICRegConfig()

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        c = self.config
        covariances = [batch_covariance(view)[1] for view in (h_bd, h_next_bd)]
        align = F.mse_loss(h_bd, h_next_bd)
        variance = torch.stack([variance_hinge(cov, c.target, c.epsilon) for cov in covariances]).sum()
        correlation = torch.stack([decorrelation(cov) for cov in covariances]).sum()
        total = c.invariance * align + c.variance * variance + c.covariance * correlation
        terms = {"invariance": align, "variance": variance, "covariance": correlation}
        return Loss(total, {name: term.detach() for name, term in terms.items()})


def variance_hinge(cov_dd: Tensor, target: float, epsilon: float) -> Tensor:
    return torch.relu(target - torch.sqrt(cov_dd.diagonal() + epsilon)).mean()


def decorrelation(cov_dd: Tensor) -> Tensor:
    off_diagonal = cov_dd - torch.diag(cov_dd.diagonal())
    return off_diagonal.square().sum() / len(cov_dd)
