"""MoCo v3: tell the slow twin's projection of the other crop from those of all other images.

    ℓ(q, k) = −2τ · mean_i log softmax_j(cos(q_i, k_j) / τ)_{j = i}

The keys k are those of the joint batch of all processes; 2τ keeps the size of the gradient whatever the temperature is.
Reference: "An Empirical Study of Training Self-Supervised Vision Transformers".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import gather_rows, rank
from jepatlas.core.errors import InputError
from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import check_momentum
from jepatlas.objectives.infonce import cosine_similarity
from jepatlas.objectives.vision.heads import perceptron
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.projectors import check_temperature, check_widths
from jepatlas.objectives.vision.slow_target import SlowTarget

__all__ = ["MoCoV3", "MoCoV3Config", "key_contrast"]


@dataclass(frozen=True)
class MoCoV3Config:
    kind: ClassVar[str] = "moco-v3"
    crops: ClassVar[CropKind] = "two"

    temperature: float = 0.2
    """τ, as published for ViTs."""
    projector: tuple[int, ...] = (512, 512, 128)
    """Units of each layer. Published: 4,096, 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output is as wide as the projector's. Published: 4,096."""
    momentum: float = 0.99
    """Of the twin at the first step; 1 at the last."""
    frozen_patches: bool = False
    """Leave the ViT's patch embedding as it was drawn: published as what keeps large ViTs stable at large batches."""

    def __post_init__(self) -> None:
        check_temperature("MoCo's temperature", self.temperature)
        check_widths("MoCo's projector", self.projector)
        check_widths("MoCo's predictor", (self.predictor,))
        check_momentum("MoCo", self.momentum)

    def build(self, parts: VisionParts) -> MoCoV3:
        return MoCoV3(parts, self)


class MoCoV3(SlowTarget):
    def __init__(self, parts: VisionParts, config: MoCoV3Config | None = None) -> None:
        self.config = config = config or MoCoV3Config()
        if config.frozen_patches:
            _patch_embedding(parts.encoder).requires_grad_(False)
        out = config.projector[-1]
        projector = perceptron(parts.dim, *config.projector, last_norm=True)
        super().__init__(parts, projector, perceptron(out, config.predictor, out, last_norm=True), config.momentum)

    def compare(self, told_bd: Tensor, target_bd: Tensor) -> Tensor:
        return key_contrast(told_bd, target_bd, self.config.temperature)


def key_contrast(queries_bd: Tensor, keys_bd: Tensor, temperature: float) -> Tensor:
    """Each process asks for its own rows, and all processes' keys are the choice."""
    similarity = cosine_similarity(queries_bd, gather_rows(keys_bd), queries_bd.new_tensor(temperature))
    answers = rank() * len(keys_bd) + torch.arange(len(keys_bd), device=keys_bd.device)
    return 2 * temperature * F.cross_entropy(similarity, answers)


def _patch_embedding(encoder: nn.Module) -> nn.Module:
    embedding = getattr(encoder, "embed", None)
    if not isinstance(embedding, nn.Module):
        raise InputError(
            f"frozen_patches leaves a ViT's patch embedding as it is, but {type(encoder).__name__} has "
            "no module 'embed'. Leave the option out."
        )
    return embedding
