"""Settings of the agents: objectives, encoders, crops and training at every scale."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jepatlas.experiments.engine.experiment import Scale
from jepatlas.nn import ViTConfig
from jepatlas.objectives import LeJEPAConfig, SIGRegConfig
from jepatlas.objectives.vision import (
    AnyVision,
    AutoencoderConfig,
    BarlowTwinsConfig,
    BYOLConfig,
    CropLeJEPAConfig,
    CropVICRegConfig,
    DecoderConfig,
    DINOConfig,
    DINOHeadConfig,
    DINOv2Config,
    IBOTConfig,
    IJEPAConfig,
    MAEConfig,
    MLPPredictorConfig,
    MoCoV3Config,
    SimCLRConfig,
    SwAVConfig,
)
from jepatlas.recipes import Augmentation
from jepatlas.training import CosineSchedule, TrainingConfig

__all__ = [
    "EPOCH_IMAGES",
    "OBJECTIVES",
    "PLANS",
    "PUBLISHED_OBJECTIVES",
    "AgentPlan",
    "augmentation_of",
    "objective_of",
    "published_training",
]

_WIDE = (8192, 8192, 8192)
SHORT_MOMENTUM = 0.955
"""The published target momentum (.996) averages over 250 steps of thousands. In 300 steps such targets would stay
close to their random initialisation; .955 averages over 22 steps, 7% of the training."""

OBJECTIVES: dict[str, AnyVision] = {
    "ijepa": IJEPAConfig(predictor=MLPPredictorConfig()),  # the published predictor: two layers of 2,048
    "lejepa": CropLeJEPAConfig(),
    "mae": MAEConfig(),
    "autoencoder": AutoencoderConfig(),
    "simclr": SimCLRConfig(),
    "byol": BYOLConfig(),
    "vicreg": CropVICRegConfig(),
    "barlow-twins": BarlowTwinsConfig(),
    "dino": DINOConfig(),
    "moco-v3": MoCoV3Config(),
    "ibot": IBOTConfig(),
    "swav": SwAVConfig(),
    "dinov2": DINOv2Config(),
}
"""Objectives with heads for CPUs."""
PUBLISHED_OBJECTIVES: dict[str, AnyVision] = OBJECTIVES | {
    "lejepa": CropLeJEPAConfig(LeJEPAConfig(0.05, sigreg=SIGRegConfig(slices=1024)), (2048, 2048, 128)),
    "mae": MAEConfig(decoder=DecoderConfig.published()),
    "autoencoder": AutoencoderConfig(16, DecoderConfig.published()),
    "simclr": SimCLRConfig(projector=(2048, 128)),
    "byol": BYOLConfig(projector=(4096, 256), predictor=4096),
    "vicreg": CropVICRegConfig(expander=_WIDE),
    "barlow-twins": BarlowTwinsConfig(projector=_WIDE),
    "dino": DINOConfig(DINOHeadConfig.published()),
    "moco-v3": MoCoV3Config(projector=(4096, 4096, 256), predictor=4096, frozen_patches=True),
    "ibot": IBOTConfig(DINOHeadConfig.published(8192)),
    # Published with 3,000 prototypes for batches of 4,096; each prototype needs rows in a batch.
    "swav": SwAVConfig(256, (2048, 128), smoothness=0.05),
    "dinov2": DINOv2Config(DINOHeadConfig.published()),
}
"""Objectives with the published heads."""


@dataclass(frozen=True)
class AgentPlan:
    """How agents of one scale are trained."""

    encoders: tuple[ViTConfig, ...]
    """From narrow to wide."""
    usual: int
    """Index of the encoder used unless the width is varied."""
    size: int
    training: TrainingConfig
    held: float
    most: int
    """Maximum number of states whose latents are stored."""
    seeds: int
    local: tuple[int, int]
    """Number and size of local crops."""


_SMALL = TrainingConfig(
    steps=300, batch_size=64, lr=3e-4, weight_decay=0.05, collapse=0.0, schedule=CosineSchedule(30), log_every=25
)
_TINY = replace(_SMALL, steps=4, batch_size=16, schedule=CosineSchedule(1), log_every=4)
_PAPER = replace(
    _SMALL, batch_size=256, betas=(0.9, 0.95), decayed="matrices", precision="bfloat16", device="cuda", log_every=50
)
PLANS: dict[Scale, AgentPlan] = {
    "tiny": AgentPlan((ViTConfig(8, 12, 2, 2), ViTConfig(8, 16, 2, 2)), 1, 16, _TINY, 0.5, 200, 1, (1, 8)),
    "small": AgentPlan((ViTConfig(width=48), ViTConfig(), ViTConfig(width=144)), 1, 48, _SMALL, 0.25, 4000, 3, (2, 24)),
    "paper": AgentPlan((ViTConfig.s16(), ViTConfig.b16(), ViTConfig.l16()), 0, 224, _PAPER, 0.2, 25_000, 3, (6, 96)),
}
"""`small` uses the published learning rate: at 1e-3, I-JEPA's latents of a drive keep one direction after 300 steps.
The number of steps at `paper` depends on the scene."""
CROP_AREAS = {
    "dino": ((0.4, 1.0), (0.05, 0.4)),
    "ibot": ((0.4, 1.0), (0.05, 0.4)),
    "dinov2": ((0.32, 1.0), (0.05, 0.32)),
    "swav": ((0.14, 1.0), (0.05, 0.14)),
}
"""Published area ranges of global and local crops."""
EPOCH_IMAGES = {
    "rendered": 43_200,
    "smallnorb": 2_700,
    "nuscenes-rear": 27_319,
    "nuscenes-side": 27_319,
    "imagenet": 1_024_934,
}
"""Training images of one view at `paper`. smallNORB: one azimuth of the 25 training toys (9 elevations, 6 lights, 2
cameras). Others: four fifths of the rendered states, of 34,149 key frames, and of 1,281,167 images."""


def objective_of(scale: Scale, name: str) -> AnyVision:
    if scale == "paper":
        return PUBLISHED_OBJECTIVES[name]
    chosen: Any = OBJECTIVES[name]
    if getattr(chosen, "momentum", 0.0) > SHORT_MOMENTUM:
        return replace(chosen, momentum=SHORT_MOMENTUM)
    return chosen


def augmentation_of(scale: Scale, objective: str, pipelines: tuple[str, ...]) -> Augmentation:
    count, size = PLANS[scale].local
    large = None
    small = Augmentation().local_scale
    if scale == "paper" and objective in CROP_AREAS:
        large, small = CROP_AREAS[objective]
    return Augmentation(pipelines, large, count, size, small)


def published_training(scene: str) -> TrainingConfig:
    """200 epochs in batches of 256 (ImageNet: 300 in batches of 1,024), of which 10 are warm-up."""
    epochs, batch, lr = (300, 1024, 1.5e-4) if scene == "imagenet" else (200, 256, 3e-4)
    images = EPOCH_IMAGES[scene]
    steps, warmup = (count * images // batch for count in (epochs, 10))
    return replace(_PAPER, steps=steps, batch_size=batch, lr=lr, schedule=CosineSchedule(warmup))
