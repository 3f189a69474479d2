"""What the agents of Social-JEPA's study learn by: with heads for CPUs, and with the published ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jepatlas.experiments.engine.experiment import Scale
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

__all__ = ["OBJECTIVES", "PUBLISHED", "objective_of"]

OBJECTIVES: dict[str, AnyVision] = {
    "ijepa": IJEPAConfig(predictor=MLPPredictorConfig()),  # the published one: two layers of 2,048
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
_WIDE = (8192, 8192, 8192)
PUBLISHED: dict[str, AnyVision] = OBJECTIVES | {
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
    # Published with 3,000 prototypes for batches of 4,096; there must be rows for each.
    "swav": SwAVConfig(256, (2048, 128), smoothness=0.05),
    "dinov2": DINOv2Config(DINOHeadConfig.published()),
}
BRIEF = 0.955


def objective_of(scale: Scale, name: str) -> AnyVision:
    """Targets that follow slowly (.996) do so over 250 steps, of thousands. In a short training they would stay what
    they were at random: there they follow over 22 steps, 7% of it."""
    chosen: Any = (PUBLISHED if scale == "paper" else OBJECTIVES)[name]
    brief = scale != "paper" and getattr(chosen, "momentum", 0.0) > BRIEF
    return replace(chosen, momentum=BRIEF) if brief else chosen
