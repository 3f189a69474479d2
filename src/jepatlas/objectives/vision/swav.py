"""SwAV: tell from one crop which prototypes another crop of the image was assigned to.

    L = mean over large crops i and crops v ≠ i of −Σ_k q_i[k] log softmax(c_k · z_v / τ),   q = Sinkhorn(c · z / ε)

z and the prototypes c have length 1. Sinkhorn's rounds over the joint batch of all processes make all prototypes
as frequent, so not all crops can be assigned to one. There is no queue of earlier rows, which published runs with small
batches add: take no more prototypes than rows.

Reference: "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import CropKind, Crops, Loss
from jepatlas.objectives.vision.distillation import across_views, entropy, sinkhorn
from jepatlas.objectives.vision.multicrop import embed_all
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, two_crops
from jepatlas.objectives.vision.projectors import check_temperature, check_widths, projector

__all__ = ["SwAV", "SwAVConfig"]


@dataclass(frozen=True)
class SwAVConfig:
    kind: ClassVar[str] = "swav"
    crops: ClassVar[CropKind] = "multi"

    prototypes: int = 64
    """K, no more than the rows of a joint batch. Published: 3,000 for batches of 4,096."""
    projector: tuple[int, ...] = (512, 64)
    """Units of each layer. Published: 2,048, 128."""
    temperature: float = 0.1
    """τ of what is told."""
    smoothness: float = 0.02
    """ε of what is assigned: the smaller, the more it is one prototype for each crop. Published: 0.05, for batches of
    4,096. In those of 64 codes then stay nearly uniform, and there is nothing to tell: on rendered objects, after 300
    steps, entropy 3.84 of ln 64 = 4.16 and latents along 1.3 directions, where 0.02 leads to 1.47 and 5.4."""
    rounds: int = 3
    """Of Sinkhorn."""
    held: float = 0.01
    """Share of the steps in which the prototypes do not move yet: the first of a hundred epochs, as published."""

    def __post_init__(self) -> None:
        check_widths("SwAV's projector", self.projector)
        check_temperature("SwAV's temperature", self.temperature)
        check_temperature("SwAV's smoothness", self.smoothness)
        if min(self.prototypes, self.rounds) < 1 or not 0 <= self.held <= 1:
            raise InputError(
                f"SwAV needs prototypes and rounds >= 1 and a share of held steps between 0 and 1, but "
                f"{self.prototypes}, {self.rounds} and {self.held} were given."
            )

    def build(self, parts: VisionParts) -> SwAV:
        return SwAV(parts, self)


class SwAV(CropObjective):
    """For any encoder that takes images of as many sizes as there are."""

    def __init__(self, parts: VisionParts, config: SwAVConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or SwAVConfig()
        self.projector = projector(parts.dim, self.config.projector)
        self.prototypes = nn.Parameter(torch.randn(self.config.prototypes, self.config.projector[-1]))
        self._to_length_one()

    def forward(self, batch: Crops, step: int) -> Loss:
        two_crops(batch)  # refused where there are none: the first two are assigned
        embedded = embed_all(self, self.projector, batch.all)
        c = self.config
        with torch.autocast(batch.x.device.type, enabled=False):
            logits = self.logits(torch.cat(embedded), step).chunk(len(embedded))
            codes = [sinkhorn(crop.detach(), c.smoothness, c.rounds) for crop in logits[:2]]
            total = across_views(codes, logits, c.temperature)
        return Loss(total, {"swapped": total.detach(), "code_entropy": entropy(torch.cat(codes))})

    def logits(self, z_md: Tensor, step: int) -> Tensor:
        """Cosines with the prototypes, (m, K). Prototypes that are held have gradient zero."""
        weights = self.prototypes
        if self.optimiser_step(step) < self.config.held * self.steps:
            weights = weights.detach() + 0 * weights
        return F.normalize(z_md, dim=1) @ weights.to(z_md.dtype).T

    def after_step(self, step: int) -> None:
        del step
        self._to_length_one()

    @torch.no_grad()
    def _to_length_one(self) -> None:
        self.prototypes.copy_(F.normalize(self.prototypes, dim=1))
