"""Recipe of a world model: its episodes, its encoder and dynamics, and how they are trained."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import tyro

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.plugins import Plugin
from jepatlas.core.records import Pairs
from jepatlas.energy.energy_configs import LeastActionConfig
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
from jepatlas.recipes.episode_sources import EpisodeSource, EpisodeSplit, WalkedWorld, gather_episodes
from jepatlas.training import TrainingConfig

if TYPE_CHECKING:
    from torch import nn

    from jepatlas.core.contracts import Batches
    from jepatlas.data import WindowStream
    from jepatlas.objectives import PairObjective, WorldModel

__all__ = [
    "LatentEnergy",
    "Predictive",
    "TwoFrames",
    "WorldModelRecipe",
    "build_windows",
    "build_world_model",
    "episodes_too_short",
]


@dataclass(frozen=True)
class LatentEnergy:
    """An energy on the latents: the number of steps from one to another."""

    kind: ClassVar[str] = "energy"

    head: HeadConfig = field(default_factory=IQEConfig)
    learning: QRLConfig | ExpectileConfig = field(default_factory=QRLConfig)
    """Objective of the energy."""
    embedding: MLPConfig | None = None
    """Network between the latents and the head. By default the head is applied to the latents."""
    width: int = 128
    """Output width of the embedding."""

    def build(self, dim: int) -> nn.Module:
        """The objective of the energy on latents of width `dim`."""
        from jepatlas.energy.learn import EmbeddedEnergy

        if self.embedding is None:
            return self.learning.build(EmbeddedEnergy(self.head.build(dim)))
        embedding = self.embedding.build(dim, self.width)
        return self.learning.build(EmbeddedEnergy(self.head.build(self.width), embedding))


@dataclass(frozen=True)
class Predictive:
    """An encoder, and dynamics that predict future latents from actions."""

    kind: ClassVar[str] = "predictive"

    horizon: int = 3
    """Number of steps that are predicted."""
    dynamics: AnyDynamics = field(default_factory=ResidualDynamicsConfig)
    loss: WorldModelConfig = field(default_factory=WorldModelConfig)
    energy: LatentEnergy | LeastActionConfig | None = None
    """The planner's energy: learned together with the model, or computed from its latents of the training episodes
    (least-action). By default Euclidean distance."""

    def __post_init__(self) -> None:
        check_count("horizon", self.horizon)


@dataclass(frozen=True)
class TwoFrames:
    """An encoder trained on pairs of successive frames. It needs no actions, and it can be certified."""

    kind: ClassVar[str] = "frames"
    horizon: ClassVar[int] = 1

    objective: LeJEPAConfig | VICRegConfig | CovarianceConfig | InfoNCEConfig | WhiteningConfig = field(
        default_factory=LeJEPAConfig
    )


@dataclass(frozen=True)
class WorldModelRecipe:
    """What a world model is learned from, and how."""

    kind: ClassVar[str] = "world-model"
    later: ClassVar[dict[str, int]] = {"history": 1}  # see to_plain

    seed: int = 0
    """Seed of the episodes, the samples and the initial weights."""
    source: WalkedWorld | EpisodeSource = field(default_factory=WalkedWorld)
    """Where episodes come from."""
    stride: int = 1
    """Steps of the world between two frames. The actions between them are concatenated to one action."""
    history: int = 1
    """Number of successive frames in one observation. With 2, velocities can be seen."""
    encoder: ConvConfig | MLPConfig = field(default_factory=ConvConfig)
    latent_dim: int = 32
    """Width of the latents."""
    model: Predictive | TwoFrames = field(default_factory=Predictive)
    preload: bool = True
    """Hold the observations of a file in memory. Otherwise they are read batch by batch."""
    training: Annotated[TrainingConfig, tyro.conf.arg(name="")] = field(
        default_factory=lambda: TrainingConfig(steps=2000, batch_size=64, lr=2e-3, weight_decay=1e-4, collapse=1e-6)
    )

    def __post_init__(self) -> None:
        for name in ("stride", "history", "latent_dim"):
            check_count(name, getattr(self, name))

    @property
    def run_name(self) -> str:
        """The name of its run folder by default."""
        return f"{self.source.name}-{self.model.kind}-s{self.seed}"

    def sealed(self) -> WorldModelRecipe:
        """With the hash of the file that it reads, if any."""
        return replace(self, source=self.source.sealed())

    def build(self) -> tuple[PairObjective | WorldModel, Batches]:
        """The objective with initial weights, and the stream of its batches."""
        episodes = gather_episodes(self.source, self.seed)
        return build_world_model(self, episodes), build_windows(self, episodes)


def build_world_model(recipe: WorldModelRecipe, data: EpisodeSplit) -> PairObjective | WorldModel:
    """The objective with initial weights, which follow from the recipe's seed."""
    from jepatlas.core.seeding import forked_rng
    from jepatlas.nn.mlp import mlp
    from jepatlas.objectives import Parts, WorldModelParts
    from jepatlas.training import check_batch_size, check_no_running_statistics

    model = recipe.model
    dim = recipe.latent_dim
    training = recipe.training
    with forked_rng(recipe.seed, "weights"):
        encoder = _build_encoder(recipe, (recipe.history * data.shape[0], *data.shape[1:]))
        if isinstance(model, TwoFrames):
            objective: PairObjective | WorldModel = model.objective.build(Parts(encoder, dim, None, recipe.seed))
        else:
            if not data.action_dim:
                raise InputError(
                    "These episodes have no actions, which the predictive model needs. Choose --model "
                    f"{TwoFrames.kind}, or --motion random."
                )
            actions = recipe.stride * data.action_dim
            inverse = mlp(2 * dim, actions, 128, 1) if model.loss.inverse else None
            energy = model.energy.build(dim) if isinstance(model.energy, LatentEnergy) else None
            parts = WorldModelParts(encoder, model.dynamics.build(dim, actions), inverse, energy, recipe.seed)
            objective = model.loss.build(parts)
    if training.ema:
        check_no_running_statistics(objective)
    check_batch_size(objective, training.batch_size // training.accumulate, dim)
    return objective


def _build_encoder(recipe: WorldModelRecipe, shape: tuple[int, ...]) -> nn.Module:
    """The encoder for observations of this shape: (channels, height, width) or (p,)."""
    if len(shape) not in (1, 3):
        raise InputError(
            f"Observations have the shape {shape}, but must be pictures (height, width, channels) or vectors. Add a "
            "channel axis to grey pictures with array[..., None], or flatten other arrays."
        )
    if isinstance(recipe.encoder, Plugin):
        in_shape = shape if len(shape) == 3 else shape[0]
        return recipe.encoder.build(in_shape, recipe.latent_dim)  # pyright: ignore[reportArgumentType]
    wanted = ConvConfig if len(shape) == 3 else MLPConfig
    if not isinstance(recipe.encoder, wanted):
        raise InputError(
            f"Observations have the shape {shape}, which the encoder '{recipe.encoder.kind}' does not take. Choose "
            f"--encoder {wanted.kind}."
        )
    if isinstance(recipe.encoder, ConvConfig):
        return recipe.encoder.build(shape, recipe.latent_dim)
    return recipe.encoder.build(shape[0], recipe.latent_dim)


def episodes_too_short(recipe: WorldModelRecipe, lengths: np.ndarray) -> int:
    """Number of episodes that are shorter than one training window."""
    return int((lengths <= recipe.model.horizon * recipe.stride).sum())


def build_windows(
    recipe: WorldModelRecipe, data: EpisodeSplit, *, held: bool = False, rows: int | None = None
) -> Batches:
    """The stream of this process's share of every (micro-)batch, from the training or the held-out episodes."""
    from jepatlas.core.distributed import rank, world_size
    from jepatlas.data import EpisodeArrays, Prefetched, WindowStream

    training = recipe.training
    windows = WindowStream(
        data.episodes,
        rows or training.batch_size // training.accumulate,
        recipe.seed,
        horizon=recipe.model.horizon,
        skip=recipe.stride,
        history=recipe.history,
        x=data.x,
        u=data.u,
        z=data.z,
        episodes=data.held if held else data.learnt,
        # Pictures of a world are drawn when they are read: draw each of them only once.
        preload=recipe.preload or isinstance(data.episodes, EpisodeArrays),
        device=training.device,
        rank=rank(),
        world_size=world_size(),
    )
    stream = windows if isinstance(recipe.model, Predictive) else _FramePairs(windows)
    return stream if recipe.preload else Prefetched(stream)


@dataclass(frozen=True)
class _FramePairs:
    """Windows of two frames, as pairs."""

    windows: WindowStream

    def __call__(self, step: int) -> Pairs:
        windows = self.windows(step)
        x, x_next = windows.frames.unbind(1)
        truth = windows.frames.new_empty(*windows.frames.shape[:2], 0) if windows.z is None else windows.z
        z, z_next = truth.unbind(1)
        return Pairs(x, x_next, z, z_next)
