"""Objectives on images: predictive, reconstructive, contrastive and self-distilling methods, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts
    from jepatlas.objectives.vision.masks import BlockMasks, MultiBlockMasks, PatchMasks
    from jepatlas.objectives.vision.vision_configs import (
        AnyPredictor,
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
    "AnyPredictor",
    "AnyVision",
    "AutoencoderConfig",
    "BYOLConfig",
    "BarlowTwinsConfig",
    "BlockMasks",
    "CropLeJEPAConfig",
    "CropObjective",
    "CropVICRegConfig",
    "DINOConfig",
    "DINOHeadConfig",
    "DINOv2Config",
    "DecoderConfig",
    "IBOTConfig",
    "IJEPAConfig",
    "LinearPredictorConfig",
    "MAEConfig",
    "MLPPredictorConfig",
    "MoCoV3Config",
    "MultiBlockMasks",
    "NarrowPredictorConfig",
    "PatchMasks",
    "SimCLRConfig",
    "SwAVConfig",
    "TemperatureConfig",
    "VisionParts",
]
