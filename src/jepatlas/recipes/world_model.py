"""The recipe of a world model: what it is learned from, what it sees and imagines with, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import tyro

from jepatlas.core.errors import InputError
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.energy.learn import ExpectileConfig, QRLConfig
from jepatlas.nn import AnyDynamics, ConvConfig, MLPConfig, ResidualDynamicsConfig
from jepatlas.objectives import (
    CovarianceConfig,
    InfoNCEConfig,
    LeJEPAConfig,
    VICRegConfig,
    WhiteningConfig,
    WorldModelConfig,
)
from jepatlas.recipes.episode_sources import EpisodeSource, WalkedWorld
from jepatlas.training import TrainingConfig

__all__ = ["LatentEnergy", "Predictive", "TwoFrames", "WorldModelRecipe"]


@dataclass(frozen=True)
class LatentEnergy:
    """An energy that is learned on the latents: how many steps it takes from one to another."""

    kind: ClassVar[str] = "energy"

    head: HeadConfig = field(default_factory=IQEConfig)
    learning: QRLConfig | ExpectileConfig = field(default_factory=QRLConfig)
    """The objective that steps are learned by."""
    embedding: MLPConfig | None = None
    """Between the latents and what the head compares; none where the latents themselves are compared."""
    width: int = 128
    """Width of what an embedding gives."""


@dataclass(frozen=True)
class Predictive:
    """An encoder and dynamics that predict what will be seen under actions."""

    kind: ClassVar[str] = "predictive"

    horizon: int = 3
    """Steps ahead that are predicted."""
    dynamics: AnyDynamics = field(default_factory=ResidualDynamicsConfig)
    loss: WorldModelConfig = field(default_factory=WorldModelConfig)
    energy: LatentEnergy | None = None

    def __post_init__(self) -> None:
        if not self.horizon >= 1:
            raise InputError(f"horizon must be at least 1, but {self.horizon} was given.")


@dataclass(frozen=True)
class TwoFrames:
    """An encoder alone, on a frame and the next: for episodes without actions, and what a certificate speaks of."""

    kind: ClassVar[str] = "frames"

    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | InfoNCEConfig | WhiteningConfig = field(
        default_factory=LeJEPAConfig
    )


@dataclass(frozen=True)
class WorldModelRecipe:
    """What a world model is learned from, and how."""

    kind: ClassVar[str] = "world-model"
    later: ClassVar[dict[str, int]] = {"history": 1}  # see to_plain

    seed: int = 0
    """From which everything random is derived."""
    source: WalkedWorld | EpisodeSource = field(default_factory=WalkedWorld)
    """Where episodes come from."""
    stride: int = 1
    """Steps of the world between two frames; the actions between them are one."""
    history: int = 1
    """Frames that are seen together, a stride apart: with two of them it can be seen how fast things move."""
    encoder: ConvConfig | MLPConfig = field(default_factory=ConvConfig)
    latent_dim: int = 32
    """Width of the latents."""
    model: Predictive | TwoFrames = field(default_factory=Predictive)
    preload: bool = True
    """Hold a file's observations in memory; otherwise every batch is read from it."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: TrainingConfig(steps=2000, batch_size=64, lr=2e-3, weight_decay=1e-4, collapse=1e-6)
    )

    def __post_init__(self) -> None:
        for name in ("stride", "history", "latent_dim"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
