"""BYOL: predict the direction of the momentum encoder's projection of the other crop, without negatives.

    ℓ(u, v) = ‖u/‖u‖ − v/‖v‖‖² = 2 − 2 cos(u, v)

Collapse is prevented by the predictor and the momentum encoder, not by the loss, which is minimal for constant latents.
Reference: "Bootstrap Your Own Latent: A New Approach to Self-Supervised Learning".
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.heads import expander, perceptron
from jepatlas.objectives.vision.joint_embedding_configs import BYOLConfig
from jepatlas.objectives.vision.momentum_target import MomentumTarget

__all__ = ["BYOL"]


class BYOL(MomentumTarget):
    def __init__(self, parts: VisionParts, config: BYOLConfig | None = None) -> None:
        self.config = config = config or BYOLConfig()
        out = config.projector[-1]
        # No bias in the last layer of the projector: the predictor's normalisation would remove it.
        projector = expander(parts.dim, config.projector)
        super().__init__(parts, projector, perceptron(out, config.predictor, out), config.momentum)

    def compare(self, predicted_bd: Tensor, target_bd: Tensor) -> Tensor:
        return 2 - 2 * F.cosine_similarity(predicted_bd, target_bd, dim=1).mean()
