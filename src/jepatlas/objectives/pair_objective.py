"""Base class of objectives on pairs: one encoder, an optional projector, one forward pass for both views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from jepatlas.core.arrays import check_latents
from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, Pairs

__all__ = ["EncoderObjective", "PairObjective", "Parts", "at_least_float32"]


@dataclass(frozen=True)
class Parts:
    """What a recipe provides to build an objective on pairs."""

    encoder: nn.Module
    dim: int
    """Width of the encoder's output."""
    projector: nn.Module | None = None
    seed: int = 0


class EncoderObjective(nn.Module, ABC):
    """What objectives with one encoder share."""

    encoder: nn.Module

    def encode(self, x: Tensor) -> Tensor:
        h = self.encoder(x)
        check_latents(h.shape, len(x))
        return h

    def after_step(self, step: int) -> None:
        """Nothing to update for most objectives."""

    def smallest_batch(self, dim: int) -> int:
        return 2


class PairObjective(EncoderObjective):
    """Encodes both views and passes them to `loss`, which subclasses define.

    The loss applies to the projector's output if there is one; `encode` returns the encoder's. Both views are one batch
    of the encoder, so batch statistics are pooled over them.
    """

    def __init__(self, encoder: nn.Module, projector: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = nn.Identity() if projector is None else projector

    def forward(self, batch: Pairs, step: int) -> Loss:
        if batch.x.shape != batch.x_next.shape:
            raise InputError(f"Both views must have the same shape, but have {batch.x.shape} and {batch.x_next.shape}.")
        embedded = self.projector(self.encoder(torch.cat([batch.x, batch.x_next])))
        check_latents(embedded.shape, 2 * len(batch.x))
        h, h_next = at_least_float32(embedded).chunk(2)
        # Batch statistics are differences of similar numbers, which half precision would lose.
        with torch.autocast(h.device.type, enabled=False):
            return self.loss(h, h_next, step)

    @abstractmethod
    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss: ...


def at_least_float32(h: Tensor) -> Tensor:
    return h.float() if h.dtype in (torch.bfloat16, torch.float16) else h
