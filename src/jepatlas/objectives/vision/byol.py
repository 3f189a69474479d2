"""BYOL: tell the slow twin's projection of the other crop, by direction alone; there are no negatives.

    ℓ(u, v) = ‖u/‖u‖ − v/‖v‖‖² = 2 − 2 cos(u, v)

That not all latents become one is due to the predictor and the slow twin, not to the loss, whose least value a
collapsed network has too. Reference: "Bootstrap Your Own Latent: A New Approach to Self-Supervised Learning".
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from jepatlas.objectives.vision.heads import perceptron
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.projectors import expander
from jepatlas.objectives.vision.slow_target import SlowTarget
from jepatlas.objectives.vision.vision_configs import BYOLConfig

__all__ = ["BYOL"]


class BYOL(SlowTarget):
    def __init__(self, parts: VisionParts, config: BYOLConfig | None = None) -> None:
        self.config = config = config or BYOLConfig()
        out = config.projector[-1]
        # The predictor's normalisation takes away any shift of what it is given, so the projector has no last bias.
        projector, predictor = expander(parts.dim, config.projector), perceptron(out, config.predictor, out)
        super().__init__(parts, projector, predictor, config.momentum)

    def compare(self, told_bd: Tensor, target_bd: Tensor) -> Tensor:
        return 2 - 2 * F.cosine_similarity(told_bd, target_bd, dim=1).mean()
