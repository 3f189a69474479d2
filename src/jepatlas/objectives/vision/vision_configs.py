"""All objectives on images, by their configurations. Importing this module does not import torch."""

from __future__ import annotations

from jepatlas.objectives.vision.joint_embedding_configs import (
    BarlowTwinsConfig,
    BYOLConfig,
    CropLeJEPAConfig,
    CropVICRegConfig,
    MoCoV3Config,
    SimCLRConfig,
)
from jepatlas.objectives.vision.prediction_configs import AutoencoderConfig, IJEPAConfig, MAEConfig
from jepatlas.objectives.vision.prototype_configs import DINOConfig, DINOv2Config, IBOTConfig, SwAVConfig

__all__ = ["AnyVision"]

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
"""The config of any objective on images. Register a new one here."""
