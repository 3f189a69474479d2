"""Validation of the settings of vision objectives."""

from __future__ import annotations

from typing import Any

import pytest

from jepatlas.core.errors import InputError
from jepatlas.objectives import LeJEPAConfig, SIGRegConfig
from jepatlas.objectives.vision.joint_embedding_configs import (
    BarlowTwinsConfig,
    BYOLConfig,
    CropLeJEPAConfig,
    CropVICRegConfig,
    MoCoV3Config,
    SimCLRConfig,
)
from jepatlas.objectives.vision.prediction_configs import (
    AutoencoderConfig,
    DecoderConfig,
    IJEPAConfig,
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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: IJEPAConfig(momentum=1.5), "I-JEPA.*1.5"),
        (lambda: IJEPAConfig(distance="l2"), "l2"),  # pyright: ignore[reportArgumentType]
        (lambda: NarrowPredictorConfig(width=10, heads=3), "I-JEPA's predictor"),
        (lambda: MLPPredictorConfig(0), "width.*0"),
        (lambda: MAEConfig(hidden=1.0), "hidden.*1.0"),
        (lambda: DecoderConfig(depth=0), "A decoder"),
        (lambda: AutoencoderConfig(patch=0), "patch.*0"),
        (lambda: DINOConfig(momentum=-1.0), "DINO.*-1.0"),
        (lambda: DINOConfig(centre_momentum=2.0), "centre.*2.0"),
        (lambda: DINOHeadConfig(prototypes=0), "prototypes"),
        (lambda: DINOHeadConfig(held=1.5), "held"),
        (lambda: TemperatureConfig(student=0.0), "student.*0.0"),
        (lambda: TemperatureConfig(warmup=2.0), "warmup.*2.0"),
        (lambda: IBOTConfig(momentum=2.0), "iBOT"),
        (lambda: DINOv2Config(koleo=-1.0), "koleo.*-1.0"),
        (lambda: DINOv2Config(centring="none"), "none"),  # pyright: ignore[reportArgumentType]
        (lambda: CropLeJEPAConfig(LeJEPAConfig(1.5)), "weight.*1.5"),
        (lambda: CropLeJEPAConfig(LeJEPAConfig(sigreg=SIGRegConfig(views="pooled"))), "views.*'pooled'"),
        (lambda: CropLeJEPAConfig(projector=(8, 0)), r"projector.*\(8,.*0\)"),
        (lambda: SimCLRConfig(0.0), r"temperature.*0\.0"),
        (lambda: SimCLRConfig(projector=(-1,)), "projector.*-1"),
        (lambda: BarlowTwinsConfig(weight=-1.0), "weight.*-1.0"),
        (lambda: BarlowTwinsConfig(projector=()), "projector"),
        (lambda: CropVICRegConfig(expander=()), "expander"),
        (lambda: BYOLConfig(projector=()), "projector"),
        (lambda: BYOLConfig(predictor=0), "predictor.*0"),
        (lambda: BYOLConfig(momentum=1.5), "BYOL.*1.5"),
        (lambda: MoCoV3Config(float("nan")), "temperature"),
        (lambda: MoCoV3Config(projector=()), "projector"),
        (lambda: MoCoV3Config(predictor=0), "predictor.*0"),
        (lambda: MoCoV3Config(momentum=-0.1), "MoCo.*-0.1"),
        (lambda: SwAVConfig(prototypes=0), "prototypes.*0"),
        (lambda: SwAVConfig(rounds=0), "rounds.*0"),
        (lambda: SwAVConfig(held=2.0), "held.*2.0"),
        (lambda: SwAVConfig(temperature=0.0), "temperature"),
        (lambda: SwAVConfig(smoothness=-1.0), "smoothness.*-1.0"),
        (lambda: SwAVConfig(projector=()), "projector"),
    ],
)
def test_errors_name_the_argument(wrong: Any, message: str):
    with pytest.raises(InputError, match=message):
        wrong()
