"""What iBOT and DINOv2 share: DINO's loss on images, and the same on patches that only the teacher sees.

    image = mean over teacher crops i and student crops j ≠ i of H(P_t(x_i), P_s(x̃_j))
    patch = mean over large crops of the mean over masked patches n of H(P_t(x)_n, P_s(x̃)_n)

x̃ is x with a learned token in place of its masked patches (small crops are whole). Half of the images are masked, in
rectangles that cover a tenth to a half.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from jepatlas.core.patches import patch_grid
from jepatlas.core.records import Crops
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.dino_head import DINOHead
from jepatlas.objectives.vision.distillation import (
    MovingCentre,
    Sinkhorn,
    across_views,
    by_size,
    cross_entropy,
    entropy,
)
from jepatlas.objectives.vision.masks import PatchMasks
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, two_crops, with_tokens
from jepatlas.objectives.vision.vision_configs import TemperatureConfig

__all__ = ["Distilled", "MaskedDistillation"]

Centring = MovingCentre | Sinkhorn


@dataclass(frozen=True)
class Distilled:
    """Both losses, the student's latents of both large crops (2b, d), and the entropy of the teacher's assignments."""

    image: Tensor
    patch: Tensor
    latents: Tensor
    entropy: Tensor


class MaskedDistillation(CropObjective, ABC):
    """`heads`: one for images and patches, or one for each; `centrings`: for images, and for patches."""

    def __init__(
        self,
        parts: VisionParts,
        heads: tuple[DINOHead, ...],
        centrings: tuple[Centring, Centring],
        masks: PatchMasks,
        temperature: TemperatureConfig,
    ) -> None:
        super().__init__(parts)
        with_tokens(parts.encoder, type(self).__name__)
        self.heads, self.centrings = nn.ModuleList(heads), nn.ModuleList(centrings)
        self.mask_token = nn.Parameter(torch.empty(parts.dim).normal_(std=0.02))
        self.teacher = EMANetwork(self._student())
        self.patch_masks, self.temperature = masks, temperature

    def distil(self, batch: Crops, step: int, *, held: bool) -> Distilled:
        views = two_crops(batch)
        masked = self.masks(views, step)
        temperature = self.temperature.teacher_at(self.optimiser_step(step), self.steps)
        images, patches = self._assigned(torch.cat(views), masked, temperature)
        encoder = with_tokens(self.encoder, type(self).__name__)
        tokens = encoder.tokens(torch.cat(views), masked=masked, mask_token=self.mask_token)
        latents = encoder.pooled(tokens)
        students = [*self._logits(0, latents, held).chunk(2)]
        for group in by_size(batch.others[1:]):
            students += self._logits(0, self.encode(torch.cat(group)), held).chunk(len(group))
        told = self._logits(-1, tokens[:, 1:][masked], held)
        with torch.autocast(batch.x.device.type, enabled=False):
            image = across_views(images.chunk(2), students, self.temperature.student)
            each = cross_entropy(patches, told, self.temperature.student)
            patch = (each * _weights(masked, each.dtype)).sum() / len(masked)
        return Distilled(image, patch, at_least_float32(latents), entropy(images))

    def masks(self, views: tuple[Tensor, Tensor], step: int) -> Tensor:
        """For both crops: (2b, n)."""
        x = views[0]
        grid = patch_grid((x.shape[-2], x.shape[-1]), with_tokens(self.encoder, type(self).__name__).patch)
        drawn = [self.patch_masks.draw(len(x), grid, self.seed, f"masks/{view}", step) for view in range(2)]
        return torch.cat(drawn).to(x.device)

    def _logits(self, head: int, h: Tensor, held: bool) -> Tensor:
        return at_least_float32(self.heads[head](h, held=held))

    @torch.no_grad()
    def _assigned(self, x: Tensor, masked: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """The teacher's assignments of images (2b, K), and of the patches that the student does not see (m, K)."""
        network: Any = self.teacher.network
        encoder, *heads = network
        tokens = encoder.tokens(x)
        logits = at_least_float32(heads[0](encoder.pooled(tokens)))
        directions = heads[-1].directions(tokens[:, 1:])
        patches, mean = (heads[-1].cosines(z) for z in (directions[masked], directions.mean((0, 1))))
        image_centring, patch_centring = self.centrings
        return (
            image_centring(logits, temperature, logits.mean(0)),
            patch_centring(at_least_float32(patches), temperature, at_least_float32(mean)),
        )

    def _student(self) -> nn.ModuleList:
        return nn.ModuleList([self.encoder, *self.heads])

    def follow(self, momentum: float, step: int) -> None:
        self.teacher.update(self._student(), momentum_at(momentum, step, self.steps))
        for centring in self.centrings:
            cast(Centring, centring).after_step()


def _weights(masked: Tensor, dtype: torch.dtype) -> Tensor:
    """One over the number of masked patches of the same image, for each of them: (m,)."""
    counts = masked.sum(1, keepdim=True)
    return (1 / counts.to(dtype)).expand(masked.shape)[masked]
