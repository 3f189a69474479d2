"""Objectives on images, one file each: predictive, reconstructive, contrastive and self-distilling."""

from jepatlas.objectives.vision.autoencoder import Autoencoder, AutoencoderConfig
from jepatlas.objectives.vision.barlow_twins import BarlowTwins, BarlowTwinsConfig
from jepatlas.objectives.vision.block_masks import BlockMasks, MultiBlockMasks
from jepatlas.objectives.vision.byol import BYOL, BYOLConfig
from jepatlas.objectives.vision.decoder import DecoderConfig
from jepatlas.objectives.vision.dino import DINO, DINOConfig
from jepatlas.objectives.vision.dino_head import DINOHeadConfig
from jepatlas.objectives.vision.dinov2 import DINOv2, DINOv2Config
from jepatlas.objectives.vision.distillation import TemperatureConfig
from jepatlas.objectives.vision.ibot import IBOT, IBOTConfig
from jepatlas.objectives.vision.ijepa import IJEPA, IJEPAConfig
from jepatlas.objectives.vision.lejepa import CropLeJEPA, CropLeJEPAConfig
from jepatlas.objectives.vision.mae import MAE, MAEConfig
from jepatlas.objectives.vision.moco_v3 import MoCoV3, MoCoV3Config
from jepatlas.objectives.vision.parts import CropObjective, VisionParts
from jepatlas.objectives.vision.predictors import LinearPredictorConfig, MLPPredictorConfig, NarrowPredictorConfig
from jepatlas.objectives.vision.simclr import SimCLR, SimCLRConfig
from jepatlas.objectives.vision.swav import SwAV, SwAVConfig
from jepatlas.objectives.vision.vicreg import CropVICReg, CropVICRegConfig

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

AnyVision = (
    IJEPAConfig
    | CropLeJEPAConfig
    | MAEConfig
    | AutoencoderConfig
    | SimCLRConfig
    | BarlowTwinsConfig
    | CropVICRegConfig
    | BYOLConfig
    | DINOConfig
    | MoCoV3Config
    | IBOTConfig
    | SwAVConfig
    | DINOv2Config
)
"""Whatever an agent on images can learn by."""
