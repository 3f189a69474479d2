"""Base class of iBOT and DINOv2: DINO's loss on images, and the same loss on masked patches.

    image = mean over teacher crops i and student crops j ≠ i of H(P_t(x_i), P_s(x̃_j))
    patch = mean over large crops of the mean over masked patches n of H(P_t(x)_n, P_s(x̃)_n)

x̃ is x with a learned token in place of masked patches (small crops are not masked). Half of the images are masked, in
rectangles that cover 10% to 50%.
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
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import (
    CropObjective,
    VisionParts,
    group_by_size,
    token_encoder,
    two_crops,
)
from jepatlas.objectives.vision.masks import PatchMasks
from jepatlas.objectives.vision.prototype_configs import TemperatureConfig
from jepatlas.objectives.vision.self_distillation import (
    DINOHead,
    MovingCentre,
    Sinkhorn,
    across_views,
    cross_entropy,
    entropy,
)

__all__ = ["DistillationLosses", "MaskedDistillation"]

Centring = MovingCentre | Sinkhorn


@dataclass(frozen=True)
class DistillationLosses:
    image: Tensor
    patch: Tensor
    latents: Tensor  # (2b, d) of the student, for both large crops
    entropy: Tensor  # of the teacher's assignments


class MaskedDistillation(CropObjective, ABC):
    """`heads` are one head for images and patches, or one for each; `centrings` are for images and for patches."""

    def __init__(
        self,
        parts: VisionParts,
        heads: tuple[DINOHead, ...],
        centrings: tuple[Centring, Centring],
        masks: PatchMasks,
        temperature: TemperatureConfig,
    ) -> None:
        super().__init__(parts)
        token_encoder(parts.encoder, type(self).__name__)
        self.heads, self.centrings = nn.ModuleList(heads), nn.ModuleList(centrings)
        self.mask_token = nn.Parameter(torch.empty(parts.dim).normal_(std=0.02))
        self.teacher = EMANetwork(self._student())
        self.patch_masks, self.temperature = masks, temperature

    def distil(self, batch: Crops, step: int, *, held: bool) -> DistillationLosses:
        views = two_crops(batch)
        masked = self.masks(views, step)
        temperature = self.temperature.teacher_at(self.optimiser_step(step), self.steps)
        images, patches = self._assign(torch.cat(views), masked, temperature)
        encoder = token_encoder(self.encoder, type(self).__name__)
        tokens = encoder.tokens(torch.cat(views), masked=masked, mask_token=self.mask_token)
        latents = encoder.pooled(tokens)
        students = [*self._logits(0, latents, held).chunk(2)]
        for group in group_by_size(batch.others[1:]):
            students += self._logits(0, self.encode(torch.cat(group)), held).chunk(len(group))
        predicted = self._logits(-1, tokens[:, 1:][masked], held)
        with torch.autocast(batch.x.device.type, enabled=False):
            image = across_views(images.chunk(2), students, self.temperature.student)
            each = cross_entropy(patches, predicted, self.temperature.student)
            patch = (each * _patch_weights(masked, each.dtype)).sum() / len(masked)
        return DistillationLosses(image, patch, at_least_float32(latents), entropy(images))

    def masks(self, views: tuple[Tensor, Tensor], step: int) -> Tensor:
        """Masks of both crops: (2b, n)."""
        x = views[0]
        grid = patch_grid((x.shape[-2], x.shape[-1]), token_encoder(self.encoder, type(self).__name__).patch)
        drawn = [self.patch_masks.draw(len(x), grid, self.seed, f"masks/{view}", step) for view in range(2)]
        return torch.cat(drawn).to(x.device)

    def _logits(self, head: int, h: Tensor, held: bool) -> Tensor:
        return at_least_float32(self.heads[head](h, held=held))

    @torch.no_grad()
    def _assign(self, x: Tensor, masked: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """The teacher's assignments of images (2b, K) and of masked patches (m, K)."""
        network: Any = self.teacher.network
        encoder, *heads = network
        tokens = encoder.tokens(x)
        logits = at_least_float32(heads[0](encoder.pooled(tokens)))
        directions = heads[-1].directions(tokens[:, 1:])
        patch_logits = at_least_float32(heads[-1].cosines(directions[masked]))
        # Cosines are linear in the directions, so this is the mean over all patches.
        patch_mean = at_least_float32(heads[-1].cosines(directions.mean((0, 1))))
        image_centring, patch_centring = self.centrings
        images = image_centring(logits, temperature, logits.mean(0))
        return images, patch_centring(patch_logits, temperature, patch_mean)

    def _student(self) -> nn.ModuleList:
        return nn.ModuleList([self.encoder, *self.heads])

    def update_teacher(self, momentum: float, step: int) -> None:
        self.teacher.update(self._student(), momentum_at(momentum, step, self.steps))
        for centring in self.centrings:
            cast(Centring, centring).after_step()


def _patch_weights(masked: Tensor, dtype: torch.dtype) -> Tensor:
    """For each masked patch, one over the number of masked patches of its image: (m,)."""
    counts = masked.sum(1, keepdim=True)
    return (1 / counts.to(dtype)).expand(masked.shape)[masked]
