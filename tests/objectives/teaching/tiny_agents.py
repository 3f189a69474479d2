"""Students and pairs of agents on tiny images; the teacher and the second agent see them mirrored."""

from __future__ import annotations

from typing import Any

import torch
from objectives.vision.tiny_vision import WIDTH, crops, images, tiny
from torch import Tensor

from jepatlas.core.records import Crops, PairedCrops
from jepatlas.core.seeding import forked_rng
from jepatlas.nn import ViTConfig
from jepatlas.objectives.teaching import DistillationConfig, MigrationConfig, MutualConfig
from jepatlas.objectives.vision import IJEPAConfig, NarrowPredictorConfig
from jepatlas.objectives.vision.crop_objective import VisionParts

STEP, TEACHER_WIDTH, NARROW = 3, 5, 8
OBJECTIVE = IJEPAConfig(NarrowPredictorConfig(width=8, depth=1, heads=2))


def teacher(x: Tensor) -> Tensor:
    """Teacher latents: a fixed mixture of an image's colour intensities, (b, 5)."""
    with forked_rng(0, "teacher"):
        return 3 * x.flatten(2).std(2) @ torch.randn(3, TEACHER_WIDTH)


def narrow() -> Any:
    with forked_rng(7, "narrow"):
        encoder = ViTConfig(patch=4, width=NARROW, depth=1, heads=2, mlp_ratio=2.0).build((3, 16, 16))
        return OBJECTIVE.build(VisionParts(encoder, NARROW, 60, 7))


def migrated(config: MigrationConfig, seed: int = 0) -> Any:
    return config.build(tiny(OBJECTIVE, seed=seed), WIDTH, TEACHER_WIDTH)


def distilled(config: DistillationConfig, seed: int = 0) -> Any:
    with forked_rng(seed, "head"):
        return config.build(tiny(OBJECTIVE, seed=seed), WIDTH, TEACHER_WIDTH)


def mutual(config: MutualConfig, seed: int = 0) -> Any:
    """Two agents of different widths."""
    return config.build((tiny(OBJECTIVE, seed=seed), narrow()), (WIDTH, NARROW))


def taught_batch(rows: int = 8, seed: int = 0) -> PairedCrops:
    shared = images(rows, seed=100 + seed)
    return PairedCrops((crops(rows, seed),), (shared, teacher(shared)))


def batch_of_two(rows: int = 8, seed: int = 0) -> PairedCrops:
    shared = images(rows, seed=100 + seed)
    mirrored = Crops(crops(rows, seed).x.flip(-1))
    return PairedCrops((crops(rows, seed), mirrored), (shared, shared.flip(-1)))


def double(batch: PairedCrops) -> PairedCrops:
    own = tuple(Crops(c.x.double(), tuple(other.double() for other in c.others)) for c in batch.own)
    return PairedCrops(own, (batch.shared[0].double(), batch.shared[1].double()))
