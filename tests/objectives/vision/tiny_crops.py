"""A convolutional network for crops of any size, objectives built on it, and a measure of collapse."""

from __future__ import annotations

from typing import Any

import torch
from objectives.vision.tiny_vision import around, crops
from torch import Tensor, nn

from jepatlas.core.records import Crops
from jepatlas.core.seeding import forked_rng

DIM = 8


def tiny_conv(seed: int = 0) -> nn.Module:
    with forked_rng(seed, "encoder"):
        seen = nn.Sequential(nn.Conv2d(3, 16, 4, stride=4), nn.GroupNorm(1, 16), nn.GELU())
        flat = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())
        # No last bias: it would get no gradient from a head that normalises the batch.
        return nn.Sequential(seen, flat, nn.Linear(64, DIM, bias=False))


def on_crops(config: Any, seed: int = 0, apart: float = 0.05) -> Any:
    return around(tiny_conv(), DIM, config, seed, apart)


def double(batch: Crops) -> Crops:
    return Crops(batch.x.double(), tuple(crop.double() for crop in batch.others))


@torch.no_grad()
def spread(objective: Any) -> tuple[float, float]:
    """Mean standard deviation and effective rank of the latents of held-out images."""
    h: Tensor = objective.encode(crops(128, seed=99).x)
    variances = torch.linalg.eigvalsh(h.double().T.cov())
    return float(variances.mean().sqrt()), float(variances.sum() ** 2 / variances.square().sum())
