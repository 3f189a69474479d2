"""InfoNCE: find the partner of each view among the partners of all others.

    L = −½ mean_i [ log softmax_j s(h_i, h'_j) + log softmax_j s(h_j, h'_i) ]_{j = i}
    gaussian:     s(u, v) = −‖u − v‖² / 2σ²      cosine:  s(u, v) = cos(u, v) / σ
    anisotropic:  s(u, v) = −Σ_i Λ_i^dose (u_i − v_i)² / 2σ²,   u and v whitened in the batch,   Π_i Λ_i = 1

With a fixed σ the Gaussian kernel saturates in high dimension, where all distances grow with √d and the
gradient vanishes; a learned one follows them.

The anisotropic kernel is that of AnInfoNCE ("InfoNCE: Identifying the Gap Between Theory and Practice"): a width for
each dimension, learned, for states whose dimensions change at different rates. There latents lie on a sphere; here
they have covariance I, as the states do. Without such a constraint Λ would mean nothing: with the Gaussian kernel an
encoder is free to scale each of its outputs by √Λ_i, so it has the full dose already; and with variances of one, but
latents that may correlate, it stretches the sum of two and shrinks their difference.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import gather_rows
from jepatlas.core.moments import batch_covariance
from jepatlas.core.records import Loss
from jepatlas.objectives.objective_configs import InfoNCEConfig
from jepatlas.objectives.pairwise import PairObjective
from jepatlas.objectives.whitening import whiten

__all__ = [
    "AnInfoNCE",
    "InfoNCE",
    "anisotropic_similarity",
    "contrast",
    "cosine_similarity",
    "gaussian_similarity",
]

EPSILON = 1e-6  # on the diagonal of the covariance before it is inverted


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
        # Every process contrasts the joint batch; anything less would have other negatives.
        total = contrast(similarity(gather_rows(h_bd), gather_rows(h_next_bd), width))
        return Loss(total, {"infonce": total.detach(), "width": width.detach()})


class AnInfoNCE(PairObjective):
    """InfoNCE with the anisotropic kernel.

    Λ descends the loss at full dose, and everything else the loss at its own: an exponent on a Λ that descends the same
    loss would be undone by a larger Λ, and every dose but zero would be the full one. The value is that of the latter.
    `encode` gives the latents before they are whitened: any invertible linear map of them has the same loss.
    """

    def __init__(self, encoder: nn.Module, dim: int, config: InfoNCEConfig | None = None) -> None:
        super().__init__(encoder)
        self.config = config or InfoNCEConfig("anisotropic")
        self.log_width = _log_width(self.config)
        self.log_precision = nn.Parameter(torch.zeros(dim))  # log Λ, but for its mean

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        dose = 1.0 if self.config.dose is None else self.config.dose
        mean, covariance = batch_covariance(torch.cat([h_bd, h_next_bd]))
        u, v = (gather_rows(whiten(h, mean, covariance, EPSILON)) for h in (h_bd, h_next_bd))
        precision, width = self.log_precision - self.log_precision.mean(), self.log_width.exp()
        total = contrast(anisotropic_similarity(u, v, dose * precision.detach(), width))
        full = contrast(anisotropic_similarity(u.detach(), v.detach(), precision, width.detach()))
        spread = ((precision.max() - precision.min()) / 2).exp()  # the widest dimension's width over the narrowest's
        terms = {"infonce": total.detach(), "width": width.detach(), "anisotropy": spread.detach()}
        return Loss(total + (full - full.detach()), terms)

    def smallest_batch(self, dim: int) -> int:
        """Both views count, and their pooled covariance must have full rank."""
        return dim // 2 + 1


def _log_width(config: InfoNCEConfig) -> nn.Parameter:
    return nn.Parameter(torch.tensor(math.log(config.width)), requires_grad=config.adaptive)


def gaussian_similarity(u_bd: Tensor, v_bd: Tensor, width: Tensor) -> Tensor:
    """−‖u_i − v_j‖² / 2σ² for all pairs (i, j)."""
    centre = v_bd.detach().mean(0)  # the squares below cancel badly where the mean is large
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
    """Symmetric cross-entropy whose right answers are on the diagonal."""
    answers = torch.arange(len(similarity_bb), device=similarity_bb.device)
    return (F.cross_entropy(similarity_bb, answers) + F.cross_entropy(similarity_bb.T, answers)) / 2
