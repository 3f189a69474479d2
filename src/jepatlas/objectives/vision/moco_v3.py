"""MoCo v3: identify the momentum encoder's projection of the other crop among those of all images.

    ℓ(q, k) = −2τ · mean_i log softmax_j(cos(q_i, k_j) / τ)_{j = i}

The keys k are those of the joint batch of all processes. The factor 2τ makes the gradient scale independent of τ.
Reference: "An Empirical Study of Training Self-Supervised Vision Transformers".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import gather_rows, rank
from jepatlas.core.errors import InputError
from jepatlas.objectives.infonce import cosine_similarity
from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.heads import perceptron
from jepatlas.objectives.vision.joint_embedding_configs import MoCoV3Config
from jepatlas.objectives.vision.momentum_target import MomentumTarget

__all__ = ["MoCoV3", "key_contrast"]


class MoCoV3(MomentumTarget):
    def __init__(self, parts: VisionParts, config: MoCoV3Config | None = None) -> None:
        self.config = config = config or MoCoV3Config()
        if config.frozen_patches:
            _patch_embedding(parts.encoder).requires_grad_(False)
        out = config.projector[-1]
        projector = perceptron(parts.dim, *config.projector, last_norm=True)
        super().__init__(parts, projector, perceptron(out, config.predictor, out, last_norm=True), config.momentum)

    def compare(self, predicted_bd: Tensor, target_bd: Tensor) -> Tensor:
        return key_contrast(predicted_bd, target_bd, self.config.temperature)


def key_contrast(queries_bd: Tensor, keys_bd: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of this process's queries over the keys of all processes."""
    similarity = cosine_similarity(queries_bd, gather_rows(keys_bd), queries_bd.new_tensor(temperature))
    answers = rank() * len(keys_bd) + torch.arange(len(keys_bd), device=keys_bd.device)
    return 2 * temperature * F.cross_entropy(similarity, answers)


def _patch_embedding(encoder: nn.Module) -> nn.Module:
    embedding = getattr(encoder, "embed", None)
    if not isinstance(embedding, nn.Module):
        raise InputError(
            f"frozen_patches needs an encoder with a patch embedding 'embed', but {type(encoder).__name__} has none. "
            "Remove the option."
        )
    return embedding
