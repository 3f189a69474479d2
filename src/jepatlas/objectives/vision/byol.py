"""BYOL: tell the slow twin's projection of the other crop, by direction alone; there are no negatives.

    ℓ(u, v) = ‖u/‖u‖ − v/‖v‖‖² = 2 − 2 cos(u, v)

That not all latents become one is due to the predictor and the slow twin, not to the loss, whose least value a
collapsed network has too. Reference: "Bootstrap Your Own Latent: A New Approach to Self-Supervised Learning".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from jepatlas.core.records import CropKind
from jepatlas.nn.network_configs import check_momentum
from jepatlas.objectives.vision.heads import perceptron
from jepatlas.objectives.vision.parts import VisionParts
from jepatlas.objectives.vision.projectors import check_widths, expander
from jepatlas.objectives.vision.slow_target import SlowTarget

__all__ = ["BYOL", "BYOLConfig"]


@dataclass(frozen=True)
class BYOLConfig:
    kind: ClassVar[str] = "byol"
    crops: ClassVar[CropKind] = "two"

    projector: tuple[int, ...] = (512, 128)
    """Units of each layer. Published: 4,096, 256."""
    predictor: int = 512
    """Hidden units of the predictor, whose output is as wide as the projector's. Published: 4,096."""
    momentum: float = 0.996
    """Of the twin at the first step; 1 at the last."""

    def __post_init__(self) -> None:
        check_widths("BYOL's projector", self.projector)
        check_widths("BYOL's predictor", (self.predictor,))
        check_momentum("BYOL", self.momentum)

    def build(self, parts: VisionParts) -> BYOL:
        return BYOL(parts, self)


class BYOL(SlowTarget):
    def __init__(self, parts: VisionParts, config: BYOLConfig | None = None) -> None:
        self.config = config = config or BYOLConfig()
        out = config.projector[-1]
        # The predictor's normalisation takes away any shift of what it is given, so the projector has no last bias.
        projector, predictor = expander(parts.dim, config.projector), perceptron(out, config.predictor, out)
        super().__init__(parts, projector, predictor, config.momentum)

    def compare(self, told_bd: Tensor, target_bd: Tensor) -> Tensor:
        return 2 - 2 * F.cosine_similarity(told_bd, target_bd, dim=1).mean()
