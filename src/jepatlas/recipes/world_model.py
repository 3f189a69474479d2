"""The recipe of a world model: what it is learned from, what it sees and imagines with, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import tyro
from torch import nn

from jepatlas.base.contracts import Batches
from jepatlas.base.distributed import rank, world_size
from jepatlas.base.errors import InputError
from jepatlas.base.records import Pairs
from jepatlas.base.seeding import forked_rng
from jepatlas.encoders import AnyDynamics, ConvConfig, MLPConfig, ResidualDynamicsConfig, mlp
from jepatlas.energy.heads import HeadConfig, IQEConfig
from jepatlas.energy.learn import EmbeddedEnergy, ExpectileConfig, QRLConfig
from jepatlas.objectives import (
    CovarianceConfig,
    InfoNCEConfig,
    LeJEPAConfig,
    Parts,
    VICRegConfig,
    WhiteningConfig,
    WorldModelConfig,
    WorldModelParts,
)
from jepatlas.recipes.episodes import EpisodeSource, HeldOut, WalkedWorld
from jepatlas.training import TrainingConfig, refuse_running_statistics, refuse_small_batch
from jepatlas.views import Prefetched, WindowStream

__all__ = ["LatentEnergy", "Predictive", "TwoFrames", "WorldModelRecipe", "build_windows", "build_world_model"]


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

    seed: int = 0
    """From which everything random is derived."""
    source: WalkedWorld | EpisodeSource = field(default_factory=WalkedWorld)
    """Where episodes come from."""
    stride: int = 1
    """Steps of the world between two frames; the actions between them are one."""
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
        for name in ("stride", "latent_dim"):
            if not getattr(self, name) >= 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")


def build_world_model(recipe: WorldModelRecipe, data: HeldOut) -> Any:
    """The objective with fresh weights: the losses of a world model, or those of pairs."""
    model, dim = recipe.model, recipe.latent_dim
    with forked_rng(recipe.seed, "weights"):
        encoder = _encoder(recipe, data.shape)
        if isinstance(model, TwoFrames):
            objective: Any = model.objective.build(Parts(encoder, dim, None, recipe.seed))
        else:
            if not data.action_dim:
                raise InputError(
                    "These episodes have no actions, so there is nothing to condition a prediction on. Choose --model "
                    "frames, or --motion random."
                )
            actions = recipe.stride * data.action_dim
            inverse = mlp(2 * dim, actions, 128, 1) if model.loss.inverse else None
            energy = None if model.energy is None else _energy(model.energy, dim)
            parts = WorldModelParts(encoder, model.dynamics.build(dim, actions), inverse, energy, recipe.seed)
            objective = model.loss.build(parts)
    if recipe.training.ema:
        refuse_running_statistics(objective)
    refuse_small_batch(objective, recipe.training.batch_size // recipe.training.accumulate, dim)
    return objective


def _encoder(recipe: WorldModelRecipe, shape: tuple[int, ...]) -> nn.Module:
    if len(shape) == 3:
        if isinstance(recipe.encoder, MLPConfig):
            raise InputError(f"Observations are pictures {shape}, which an mlp does not take. Choose --encoder conv.")
        return recipe.encoder.build(shape, recipe.latent_dim)
    if isinstance(recipe.encoder, ConvConfig) or len(shape) != 1:
        raise InputError(f"Observations have the shape {shape}: they are no pictures. Choose --encoder mlp.")
    return recipe.encoder.build(shape[0], recipe.latent_dim)


def _energy(config: LatentEnergy, dim: int) -> nn.Module:
    if config.embedding is None:
        return config.learning.build(EmbeddedEnergy(config.head.build(dim)))
    embedding = config.embedding.build(dim, config.width)
    return config.learning.build(EmbeddedEnergy(config.head.build(config.width), embedding))


def build_windows(recipe: WorldModelRecipe, data: HeldOut, *, held: bool = False, rows: int | None = None) -> Batches:
    """The stream of this process's share of every (micro-)batch, from the episodes to learn from or those held out."""
    windows = WindowStream(
        data.episodes,
        rows or recipe.training.batch_size // recipe.training.accumulate,
        recipe.seed,
        horizon=recipe.model.horizon if isinstance(recipe.model, Predictive) else 1,
        skip=recipe.stride,
        x=data.x,
        u=data.u,
        z=data.z,
        episodes=data.held if held else data.learnt,
        preload=recipe.preload,
        device=recipe.training.device,
        rank=rank(),
        world_size=world_size(),
    )
    stream = windows if isinstance(recipe.model, Predictive) else _TwoFrames(windows)
    return stream if recipe.preload else Prefetched(stream)  # what is read from a disk is read ahead


@dataclass(frozen=True)
class _TwoFrames:
    """Windows of two frames, as pairs."""

    stream: WindowStream

    def __call__(self, step: int) -> Pairs:
        windows = self.stream(step)
        x, x_next = windows.frames.unbind(1)
        truth = windows.frames.new_empty(*windows.frames.shape[:2], 0) if windows.z is None else windows.z
        z, z_next = truth.unbind(1)
        return Pairs(x, x_next, z, z_next)
