"""InfoNCE: identify the partner of each view among the partners of all views in the batch.

    L = −½ mean_i [ log softmax_j s(h_i, h'_j) + log softmax_j s(h_j, h'_i) ]_{j = i}
    gaussian:     s(u, v) = −‖u − v‖² / 2σ²      cosine:  s(u, v) = cos(u, v) / σ
    anisotropic:  s(u, v) = −Σ_i Λ_i^dose (u_i − v_i)² / 2σ²,   u and v whitened in the batch,   Π_i Λ_i = 1

With a fixed σ the Gaussian kernel saturates in high dimension: distances grow with √d and the gradient vanishes. A
learned σ adapts.

The anisotropic kernel is that of AnInfoNCE ("InfoNCE: Identifying the Gap Between Theory and Practice"), with a learned
width per dimension for states whose dimensions change at different rates. In the paper latents lie on a sphere; here
they have covariance I, like the states. Without such a constraint Λ is not identifiable: with the Gaussian kernel the
encoder can scale its outputs by √Λ_i; with unit variances but free correlations it stretches the sum of two dimensions
and shrinks their difference.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import gather_rows
from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.objectives.exact_whitening import whiten
from jepatlas.objectives.objective_configs import InfoNCEConfig
from jepatlas.objectives.pair_objective import PairObjective

__all__ = [
    "AnInfoNCE",
    "InfoNCE",
    "anisotropic_similarity",
    "contrast",
    "cosine_similarity",
    "gaussian_similarity",
]

EPSILON = 1e-6  # added to the diagonal of the covariance before inversion


class InfoNCE(PairObjective):
    def __init__(
        self, encoder: nn.Module, config: InfoNCEConfig | None = None, projector: nn.Module | None = None
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or InfoNCEConfig()
        self.log_width = _log_width(self.config)

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        similarity = gaussian_similarity if self.config.kernel == "gaussian" else cosine_similarity
        width = self.log_width.exp()
        # Contrast the joint batch of all processes, so that the negatives do not depend on their number.
        total = contrast(similarity(gather_rows(h_bd), gather_rows(h_next_bd), width))
        return Loss(total, {"infonce": total.detach(), "width": width.detach()})


class AnInfoNCE(PairObjective):
    """InfoNCE with the anisotropic kernel.

    Λ minimises the loss at full dose, and all other parameters the loss at the configured dose, whose value is
    returned. If Λ minimised the same loss, a larger Λ would compensate the exponent and the dose would have no effect.
    `encode` returns the latents before whitening; the loss is invariant to invertible linear maps of them.
    """

    def __init__(self, encoder: nn.Module, dim: int, config: InfoNCEConfig | None = None) -> None:
        super().__init__(encoder)
        self.config = config or InfoNCEConfig("anisotropic")
        self.log_width = _log_width(self.config)
        self.log_precision = nn.Parameter(torch.zeros(dim))  # log Λ up to its mean

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        dose = 1.0 if self.config.dose is None else self.config.dose
        mean, covariance = batch_covariance(torch.cat([h_bd, h_next_bd]))
        u, v = (gather_rows(whiten(h, mean, covariance, EPSILON)) for h in (h_bd, h_next_bd))
        precision, width = self.log_precision - self.log_precision.mean(), self.log_width.exp()
        total = contrast(anisotropic_similarity(u, v, dose * precision.detach(), width))
        full = contrast(anisotropic_similarity(u.detach(), v.detach(), precision, width.detach()))
        spread = ((precision.max() - precision.min()) / 2).exp()  # ratio of the largest to the smallest width
        terms = {"infonce": total.detach(), "width": width.detach(), "anisotropy": spread.detach()}
        return Loss(total + (full - full.detach()), terms)

    def smallest_batch(self, dim: int) -> int:
        """The pooled covariance of both views must have full rank."""
        return dim // 2 + 1


def _log_width(config: InfoNCEConfig) -> nn.Parameter:
    return nn.Parameter(torch.tensor(math.log(config.width)), requires_grad=config.adaptive)


def gaussian_similarity(u_bd: Tensor, v_bd: Tensor, width: Tensor) -> Tensor:
    """−‖u_i − v_j‖² / 2σ² for all pairs (i, j)."""
    centre = v_bd.detach().mean(0)  # avoids cancellation in the squares below if the mean is large
    u_bd, v_bd = u_bd - centre, v_bd - centre
    squares = u_bd.square().sum(1)[:, None] + v_bd.square().sum(1)[None, :] - 2 * u_bd @ v_bd.T
    return -squares.clamp_min(0) / (2 * width.square())


def anisotropic_similarity(u_bd: Tensor, v_bd: Tensor, log_precision_d: Tensor, width: Tensor) -> Tensor:
    """−Σ_k Λ_k (u_ik − v_jk)² / 2σ² for all pairs (i, j)."""
    root = (log_precision_d / 2).exp()
    return gaussian_similarity(u_bd * root, v_bd * root, width)


def cosine_similarity(u_bd: Tensor, v_bd: Tensor, width: Tensor) -> Tensor:
    return F.normalize(u_bd, dim=1) @ F.normalize(v_bd, dim=1).T / width


def contrast(similarity_bb: Tensor) -> Tensor:
    """Symmetric cross-entropy with the positives on the diagonal."""
    answers = torch.arange(len(similarity_bb), device=similarity_bb.device)
    return (F.cross_entropy(similarity_bb, answers) + F.cross_entropy(similarity_bb.T, answers)) / 2
