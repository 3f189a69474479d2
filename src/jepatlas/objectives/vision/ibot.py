"""iBOT: DINO on images and on masked patches, with one head for both (see `masked_distillation.py`).

    L = image + patch

Reference: "iBOT: Image BERT Pre-Training with Online Tokenizer".
"""

from __future__ import annotations

from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.masked_distillation import MaskedDistillation
from jepatlas.objectives.vision.prototype_configs import IBOTConfig
from jepatlas.objectives.vision.self_distillation import MovingCentre

__all__ = ["IBOT"]


class IBOT(MaskedDistillation):
    def __init__(self, parts: VisionParts, config: IBOTConfig | None = None) -> None:
        self.config = config = config or IBOTConfig()
        prototypes = config.head.prototypes
        image, patch = (MovingCentre(prototypes, config.centre_momentum, parts.accumulate) for _ in range(2))
        super().__init__(parts, (config.head.build(parts.dim),), (image, patch), config.masks, config.temperature)

    def forward(self, batch: Crops, step: int) -> Loss:
        losses = self.distil(batch, step, held=self.optimiser_step(step) < self.config.head.held * self.steps)
        terms = {"image": losses.image, "patch": losses.patch, "teacher_entropy": losses.entropy}
        return Loss(losses.image + losses.patch, {name: term.detach() for name, term in terms.items()})

    def after_step(self, step: int) -> None:
        self.update_teacher(self.config.momentum, step)
