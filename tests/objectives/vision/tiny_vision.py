"""Structured random images, crops of them, and a tiny vision transformer."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor, nn

from jepatlas.core.records import Crops
from jepatlas.core.seeding import forked_rng, torch_generator
from jepatlas.nn import ViT, ViTConfig
from jepatlas.objectives.vision.crop_objective import VisionParts

STEPS = 60
WIDTH = 16


def images(count: int, size: int = 16, seed: int = 0) -> Tensor:
    """Plane waves of random direction, wavelength, phase and colour, in [0, 1]."""
    u = torch.rand(count, 6, generator=torch_generator(seed, "images"))
    place = torch.linspace(0, 1, size)
    turn = 2 * torch.pi * u[:, 0]
    along = torch.cos(turn)[:, None, None] * place + torch.sin(turn)[:, None, None] * place[:, None]
    wave = torch.sin(2 * torch.pi * ((1 + 2 * u[:, 1])[:, None, None] * along + u[:, 2, None, None]))
    return 0.5 + 0.5 * wave[:, None] * u[:, 3:, None, None]


@functools.cache
def crops(count: int, seed: int = 0, local: int = 2) -> Crops:
    """Two large crops of 16 pixels and `local` ones of 8, of images of 24."""
    x = images(count, 24, seed)
    corners = torch.randint(0, 9, (2 + local, 2), generator=torch_generator(seed, "corners")).tolist()
    cut = [x[:, :, i : i + s, j : j + s] for (i, j), s in zip(corners, [16, 16] + [8] * local, strict=True)]
    return Crops(cut[0], tuple(cut[1:]))


def tiny_vit(pool: Any = "cls", seed: int = 0) -> ViT:
    with forked_rng(seed, "encoder"):
        return ViTConfig(patch=4, width=WIDTH, depth=2, heads=2, mlp_ratio=2.0, pool=pool).build((3, 16, 16))


def around(encoder: nn.Module, dim: int, config: Any, seed: int, apart: float) -> Any:
    """Build the objective of a config. Its momentum encoder, if any, differs by noise of size `apart`."""
    with forked_rng(seed, "objective"):
        objective = config.build(VisionParts(encoder, dim, STEPS, seed))
        with torch.no_grad():
            for parameter in objective.parameters():
                parameter.add_(apart * torch.randn_like(parameter))
    return objective


def tiny(config: Any, pool: Any = "cls", seed: int = 0, apart: float = 0.05) -> Any:
    return around(tiny_vit(pool), WIDTH, config, seed, apart)
