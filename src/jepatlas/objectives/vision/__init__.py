"""Objectives on images, one file each: predictive, reconstructive, contrastive and self-distilling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.vision.autoencoder import Autoencoder
    from jepatlas.objectives.vision.barlow_twins import BarlowTwins
    from jepatlas.objectives.vision.block_masks import BlockMasks, MultiBlockMasks
    from jepatlas.objectives.vision.byol import BYOL
    from jepatlas.objectives.vision.dino import DINO
    from jepatlas.objectives.vision.dinov2 import DINOv2
    from jepatlas.objectives.vision.ibot import IBOT
    from jepatlas.objectives.vision.ijepa import IJEPA
    from jepatlas.objectives.vision.lejepa import CropLeJEPA
    from jepatlas.objectives.vision.mae import MAE
    from jepatlas.objectives.vision.moco_v3 import MoCoV3
    from jepatlas.objectives.vision.parts import CropObjective, VisionParts
    from jepatlas.objectives.vision.simclr import SimCLR
    from jepatlas.objectives.vision.swav import SwAV
    from jepatlas.objectives.vision.vicreg import CropVICReg
    from jepatlas.objectives.vision.vision_configs import (
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
        LinearPredictorConfig,
        MAEConfig,
        MLPPredictorConfig,
        MoCoV3Config,
        NarrowPredictorConfig,
        SimCLRConfig,
        SwAVConfig,
        TemperatureConfig,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "BYOL",
    "DINO",
    "IBOT",
    "IJEPA",
    "MAE",
    "AnyVision",
    "Autoencoder",
    "AutoencoderConfig",
    "BYOLConfig",
    "BarlowTwins",
    "BarlowTwinsConfig",
    "BlockMasks",
    "CropLeJEPA",
    "CropLeJEPAConfig",
    "CropObjective",
    "CropVICReg",
    "CropVICRegConfig",
    "DINOConfig",
    "DINOHeadConfig",
    "DINOv2",
    "DINOv2Config",
    "DecoderConfig",
    "IBOTConfig",
    "IJEPAConfig",
    "LinearPredictorConfig",
    "MAEConfig",
    "MLPPredictorConfig",
    "MoCoV3",
    "MoCoV3Config",
    "MultiBlockMasks",
    "NarrowPredictorConfig",
    "SimCLR",
    "SimCLRConfig",
    "SwAV",
    "SwAVConfig",
    "TemperatureConfig",
    "VisionParts",
]
