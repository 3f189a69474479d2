"""Objectives on images: predictive, reconstructive, contrastive and self-distilling methods, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts
    from jepatlas.objectives.vision.joint_embedding_configs import (
        BarlowTwinsConfig,
        BYOLConfig,
        CropLeJEPAConfig,
        CropVICRegConfig,
        MoCoV3Config,
        SimCLRConfig,
    )
    from jepatlas.objectives.vision.masks import BlockMasks, MultiBlockMasks, PatchMasks
    from jepatlas.objectives.vision.prediction_configs import (
        AnyPredictor,
        AutoencoderConfig,
        DecoderConfig,
        IJEPAConfig,
        LinearPredictorConfig,
        MAEConfig,
        MLPPredictorConfig,
        NarrowPredictorConfig,
    )
    from jepatlas.objectives.vision.prototype_configs import (
        DINOConfig,
        DINOHeadConfig,
        DINOv2Config,
        IBOTConfig,
        SwAVConfig,
        TemperatureConfig,
    )
    from jepatlas.objectives.vision.vision_configs import AnyVision
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
