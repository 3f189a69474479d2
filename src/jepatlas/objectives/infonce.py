"""InfoNCE: find the partner of each view among the partners of all others.

    L = −½ mean_i [ log softmax_j s(h_i, h'_j) + log softmax_j s(h_j, h'_i) ]_{j = i}
    gaussian:  s(u, v) = −‖u − v‖² / 2σ²      cosine:  s(u, v) = cos(u, v) / σ

With a fixed σ the Gaussian kernel saturates in high dimension, where all distances grow with √d and the
gradient vanishes; a learned one follows them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.base.distributed import gather_rows
from jepatlas.base.errors import InputError
from jepatlas.base.records import Loss
from jepatlas.objectives.pairwise import PairObjective, Parts

__all__ = ["InfoNCE", "InfoNCEConfig", "contrast", "cosine_similarity", "gaussian_similarity"]


@dataclass(frozen=True)
class InfoNCEConfig:
    kind: ClassVar[str] = "infonce"

    kernel: Literal["gaussian", "cosine"] = "gaussian"
    """How two latents are compared. Cosine leaves their length free."""
    width: float = 1.0
    """σ: the kernel's width, or the temperature of the cosine; its first value where it is learned."""
    adaptive: bool = False
    """Learn σ with the rest."""

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise InputError(f"The kernel width must be positive, but {self.width} was given.")

    def build(self, parts: Parts) -> InfoNCE:
        return InfoNCE(parts.encoder, self, parts.projector)


class InfoNCE(PairObjective):
    def __init__(
        self, encoder: nn.Module, config: InfoNCEConfig | None = None, projector: nn.Module | None = None
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or InfoNCEConfig()
        log_width = torch.tensor(math.log(self.config.width))
        self.log_width = nn.Parameter(log_width, requires_grad=self.config.adaptive)

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        similarity = gaussian_similarity if self.config.kernel == "gaussian" else cosine_similarity
        width = self.log_width.exp()
        # Every process contrasts the joint batch; anything less would have other negatives.
        total = contrast(similarity(gather_rows(h_bd), gather_rows(h_next_bd), width))
        return Loss(total, {"infonce": total.detach(), "width": width.detach()})


def gaussian_similarity(u_bd: Tensor, v_bd: Tensor, width: Tensor) -> Tensor:
    """−‖u_i − v_j‖² / 2σ² for all pairs (i, j)."""
    centre = v_bd.detach().mean(0)  # the squares below cancel badly where the mean is large
    u_bd, v_bd = u_bd - centre, v_bd - centre
    squares = u_bd.square().sum(1)[:, None] + v_bd.square().sum(1)[None, :] - 2 * u_bd @ v_bd.T
    return -squares.clamp_min(0) / (2 * width.square())


def cosine_similarity(u_bd: Tensor, v_bd: Tensor, width: Tensor) -> Tensor:
    return F.normalize(u_bd, dim=1) @ F.normalize(v_bd, dim=1).T / width


def contrast(similarity_bb: Tensor) -> Tensor:
    """Symmetric cross-entropy whose right answers are on the diagonal."""
    answers = torch.arange(len(similarity_bb), device=similarity_bb.device)
    return (F.cross_entropy(similarity_bb, answers) + F.cross_entropy(similarity_bb.T, answers)) / 2
