"""All objectives on images, each with a tiny network, and a short training loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from objectives.vision.tiny_crops import DIM, on_crops
from objectives.vision.tiny_vision import WIDTH, crops, tiny
from torch import Tensor, nn

from jepatlas.core.records import Loss
from jepatlas.objectives import LeJEPAConfig, SIGRegConfig, VICRegConfig
from jepatlas.objectives.vision.joint_embedding_configs import (
    BarlowTwinsConfig,
    BYOLConfig,
    CropLeJEPAConfig,
    CropVICRegConfig,
    MoCoV3Config,
    SimCLRConfig,
)
from jepatlas.objectives.vision.masks import MultiBlockMasks
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
)

HEAD = DINOHeadConfig(prototypes=24, width=32, bottleneck=16)
NARROW = NarrowPredictorConfig(width=8, depth=1, heads=2)
DECODER = DecoderConfig(width=16, depth=1, heads=2)

# Add a new objective to one list: ON_VIT if it masks or distils, ON_CONV if it compares crops.
ON_VIT: list[Any] = [
    IJEPAConfig(NARROW),
    IJEPAConfig(MLPPredictorConfig(32), "smooth-l1"),
    IJEPAConfig(NARROW, masks=MultiBlockMasks()),
    MAEConfig(decoder=DECODER),
    MAEConfig(0.5, normal=False, decoder=DECODER),
    AutoencoderConfig(4, DECODER),
    DINOConfig(HEAD),
    IBOTConfig(HEAD),
    DINOv2Config(HEAD),
    DINOv2Config(HEAD, centring="centre", koleo=1.0),
]
ON_CONV: list[Any] = [
    CropLeJEPAConfig(projector=(32, 16)),
    CropLeJEPAConfig(LeJEPAConfig(0.1, "additive", SIGRegConfig(slices=16, fresh=False)), projector=()),
    SimCLRConfig(projector=(32, 16)),
    SimCLRConfig(0.5, projector=()),
    BarlowTwinsConfig(projector=(32, 16)),
    CropVICRegConfig(expander=(32, 16)),
    CropVICRegConfig(VICRegConfig(covariance=4.0), expander=(16,)),
    BYOLConfig((32, 16), 32),
    MoCoV3Config(projector=(32, 16), predictor=32),
    SwAVConfig(12, (32, 16)),
]
OBJECTIVES = ON_VIT + ON_CONV
MASKING = {"ijepa", "mae", "ibot", "dinov2"}
ROWS, STEP = 8, 3  # after the steps with frozen prototypes


def named(config: Any) -> str:
    return f"{OBJECTIVES.index(config)}-{config.kind}"


every_objective = pytest.mark.parametrize("config", OBJECTIVES, ids=named)


def made(config: Any, seed: int = 0, apart: float = 0.05, pool: str = "cls") -> Any:
    """Build the objective on its network; `pool` applies to the ViT only."""
    return tiny(config, pool, seed, apart) if config in ON_VIT else on_crops(config, seed, apart)


def width(config: Any) -> int:
    return WIDTH if config in ON_VIT else DIM


def gradients(objective: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in objective.named_parameters() if p.grad is not None}


def descend(objective: Any, steps: int) -> list[Loss]:
    """Losses of a short training on changing crops, one per step."""
    optimizer = torch.optim.AdamW([p for p in objective.parameters() if p.requires_grad], lr=3e-3, fused=True)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = objective(crops(32, seed=step % 8), step)
        loss.total.backward()
        optimizer.step()
        objective.after_step(step)
        losses.append(Loss(loss.total.detach(), loss.terms))
    return losses
