"""Exact whitening: Cov h = I holds in every batch by construction, and only the alignment is learned.

    u = L⁻¹ (h − mean),  Cov of both views = LLᵀ,   loss = mean (u − ū)²

The gradient passes through the whitening. In evaluation mode the running mean and covariance are used.
Reference: "Whitening for Self-Supervised Representation Learning".
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.nn.ema import ema_update
from jepatlas.objectives.lejepa import invariance
from jepatlas.objectives.objective_configs import WhiteningConfig
from jepatlas.objectives.pair_objective import PairObjective, at_least_float32

__all__ = ["ExactWhitening", "whiten"]


class ExactWhitening(PairObjective):
    """`encode` returns the whitened latents."""

    mean: Tensor
    covariance: Tensor

    def __init__(self, encoder: nn.Module, dim: int, config: WhiteningConfig | None = None) -> None:
        super().__init__(encoder)
        self.config = config or WhiteningConfig()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("covariance", torch.eye(dim))

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        mean, covariance = batch_covariance(torch.cat([h_bd, h_next_bd]))
        if self.training:
            self._update_statistics(mean.detach(), covariance.detach(), step)
        u, u_next = (whiten(h, mean, covariance, self.config.epsilon) for h in (h_bd, h_next_bd))
        total = invariance(u, u_next)
        return Loss(total, {"invariance": total.detach()})

    def _update_statistics(self, mean: Tensor, covariance: Tensor, step: int) -> None:
        """Update running statistics: the plain average of the first batches, then an exponential moving average."""
        rate = max(1 - self.config.momentum, 1 / (step + 1))
        ema_update(self.mean, mean, rate)
        ema_update(self.covariance, covariance, rate)

    def encode(self, x: Tensor) -> Tensor:
        h = at_least_float32(super().encode(x))
        return whiten(h, self.mean.to(h), self.covariance.to(h), self.config.epsilon)

    def smallest_batch(self, dim: int) -> int:
        """The pooled covariance of both views must have full rank."""
        return dim // 2 + 1


def whiten(h_bd: Tensor, mean_d: Tensor, cov_dd: Tensor, epsilon: float = 0.0) -> Tensor:
    """L⁻¹(h − mean) with Cov = LLᵀ; NaN if the covariance is not positive definite, which stops the training loop."""
    eye = torch.eye(len(cov_dd), dtype=cov_dd.dtype, device=cov_dd.device)
    root, failed = torch.linalg.cholesky_ex(cov_dd + epsilon * eye)
    root = torch.where(failed > 0, torch.nan, root)
    return torch.linalg.solve_triangular(root, (h_bd - mean_d).T, upper=False).T
