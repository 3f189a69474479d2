"""Crops of several sizes through one network: each size is one pass through the encoder, and all are one of the head.

So the head's batch statistics are those of all crops together, as published for SwAV.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.distillation import by_size
from jepatlas.objectives.vision.parts import CropObjective

__all__ = ["embed_all"]


def embed_all(objective: CropObjective, head: nn.Module, crops: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Each crop's embedding, (b, d), in the order of the crops."""
    rows = {len(crop) for crop in crops}
    if len(crops) < 2 or len(rows) > 1:
        raise InputError(
            f"This objective compares two crops or more of the same images, but it was given {len(crops)} "
            f"of {sorted(rows)} images."
        )
    latents = [objective.encode(torch.cat(group)) for group in by_size(crops)]
    return at_least_float32(head(torch.cat(latents))).chunk(len(crops))
