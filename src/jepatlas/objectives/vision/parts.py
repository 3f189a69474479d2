"""What all objectives on images share: one encoder, crops of the same images, and one kind of answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from jepatlas.core.arrays import check_latents
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.pairwise import at_least_float32

__all__ = ["CropObjective", "VisionParts"]


@dataclass(frozen=True)
class VisionParts:
    """What a recipe has ready when it builds an objective on images."""

    encoder: nn.Module
    dim: int
    """Width of the encoder's output, and of its tokens."""
    steps: int
    """How many steps the run will take: schedules of momenta and temperatures end there."""
    seed: int = 0
    accumulate: int = 1
    """Micro-batches of a step."""


class CropObjective(nn.Module, ABC):
    """An objective on crops; subclasses give the loss, and own whatever else they train beside the encoder."""

    def __init__(self, parts: VisionParts) -> None:
        super().__init__()
        self.encoder, self.steps, self.seed = parts.encoder, parts.steps, parts.seed
        self.accumulate = parts.accumulate

    def optimiser_step(self, step: int) -> int:
        """Of the (micro-)batch that is given as `step`: what is random goes by that number, and schedules by this."""
        return step // self.accumulate

    @abstractmethod
    def forward(self, batch: Crops, step: int) -> Loss: ...

    def embed(self, head: nn.Module, crops: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Crops of one size through encoder and head as one batch, so that batch statistics are pooled."""
        embedded = head(self.encoder(torch.cat(crops)))
        check_latents(embedded.shape, len(crops) * len(crops[0]))
        return at_least_float32(embedded).chunk(len(crops))

    def encode(self, x: Tensor) -> Tensor:
        h = self.encoder(x)
        check_latents(h.shape, len(x))
        return h

    def after_step(self, step: int) -> None:
        """Nothing to do for most objectives."""

    def smallest_batch(self, dim: int) -> int:
        del dim
        return 2


def with_tokens(encoder: nn.Module, name: str) -> Any:
    """The encoder, if it can give tokens of some patches only; others are refused by name of the objective."""
    if not hasattr(encoder, "tokens"):
        raise InputError(
            f"{name} masks patches, so it needs an encoder with tokens, such as a ViT; "
            f"{type(encoder).__name__} has none."
        )
    return cast(Any, encoder)


def two_crops(batch: Crops) -> tuple[Tensor, Tensor]:
    if not batch.others or batch.others[0].shape != batch.x.shape:
        shapes = " and ".join(str(tuple(crop.shape[1:])) for crop in batch.all)
        raise InputError(f"This objective compares two crops of one size, but the batch has {shapes}.")
    return batch.x, batch.others[0]
