"""Base class of objectives on images."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from jepatlas.core.arrays import check_latents
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.pair_objective import EncoderObjective, at_least_float32

__all__ = ["CropObjective", "VisionParts", "embed_crops", "group_by_size", "token_encoder", "two_crops"]


@dataclass(frozen=True)
class VisionParts:
    """What a recipe provides to build an objective on images."""

    encoder: nn.Module
    dim: int
    """Width of the encoder's output and of its tokens."""
    steps: int
    """Steps of the run; schedules of momenta and temperatures end there."""
    seed: int = 0
    accumulate: int = 1
    """Micro-batches per step."""


class CropObjective(EncoderObjective):
    """An objective on crops. Subclasses define the loss and own all other trained modules."""

    def __init__(self, parts: VisionParts) -> None:
        super().__init__()
        self.encoder, self.steps, self.seed = parts.encoder, parts.steps, parts.seed
        self.accumulate = parts.accumulate

    def optimiser_step(self, step: int) -> int:
        """The optimiser step of micro-batch `step`. Random numbers depend on the latter, schedules on the former."""
        return step // self.accumulate

    @abstractmethod
    def forward(self, batch: Crops, step: int) -> Loss: ...

    def embed(self, head: nn.Module, crops: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Crops of equal size through encoder and head as one batch, so that batch statistics are pooled."""
        embedded = head(self.encoder(torch.cat(crops)))
        check_latents(embedded.shape, len(crops) * len(crops[0]))
        return at_least_float32(embedded).chunk(len(crops))


def token_encoder(encoder: nn.Module, name: str) -> Any:
    """The encoder if it provides `tokens` of selected patches; otherwise raises InputError naming the objective."""
    if not hasattr(encoder, "tokens"):
        raise InputError(
            f"{name} masks patches and needs an encoder with tokens, such as a ViT; {type(encoder).__name__} has none."
        )
    return cast(Any, encoder)


def two_crops(batch: Crops) -> tuple[Tensor, Tensor]:
    """The first two crops, which must have equal size."""
    if not batch.others or batch.others[0].shape != batch.x.shape:
        shapes = " and ".join(str(tuple(crop.shape[1:])) for crop in batch.all)
        raise InputError(f"This objective needs two crops of equal size, but the batch has {shapes}.")
    return batch.x, batch.others[0]


def embed_crops(objective: CropObjective, head: nn.Module, crops: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Embeddings (b, d) of crops of several sizes, in their order.

    Each size is one batch of the encoder. All crops are one batch of the head, so its batch statistics are pooled, as
    published for SwAV.
    """
    rows = {len(crop) for crop in crops}
    if len(crops) < 2 or len(rows) > 1:
        raise InputError(
            f"This objective needs at least two crops of the same images, but was given {len(crops)} crop(s) of "
            f"{sorted(rows)} images."
        )
    latents = [objective.encode(torch.cat(group)) for group in group_by_size(crops)]
    return at_least_float32(head(torch.cat(latents))).chunk(len(crops))


def group_by_size(crops: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Group consecutive crops of equal size; each group is one batch of the encoder."""
    groups: list[tuple[Tensor, ...]] = []
    for crop in crops:
        if groups and groups[-1][0].shape == crop.shape:
            groups[-1] = (*groups[-1], crop)
        else:
            groups.append((crop,))
    return groups
