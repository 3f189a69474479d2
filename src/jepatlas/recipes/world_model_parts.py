"""From the recipe of a world model to what the loop trains: the objective, and the stream of its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import forked_rng
from jepatlas.data import EpisodeArrays, Prefetched, WindowStream
from jepatlas.energy.learn import EmbeddedEnergy
from jepatlas.nn import ConvConfig, MLPConfig
from jepatlas.nn.mlp import mlp
from jepatlas.objectives import Parts, WorldModelParts
from jepatlas.recipes.episodes import HeldOut
from jepatlas.recipes.world_model import LatentEnergy, Predictive, TwoFrames, WorldModelRecipe
from jepatlas.training import check_batch_size, check_no_running_statistics

__all__ = ["build_windows", "build_world_model", "episodes_too_short"]


def build_world_model(recipe: WorldModelRecipe, data: HeldOut) -> Any:
    """The objective with fresh weights: the losses of a world model, or those of pairs."""
    model, dim = recipe.model, recipe.latent_dim
    with forked_rng(recipe.seed, "weights"):
        encoder = _encoder(recipe, (recipe.history * data.shape[0], *data.shape[1:]))
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
        check_no_running_statistics(objective)
    check_batch_size(objective, recipe.training.batch_size // recipe.training.accumulate, dim)
    return objective


def _encoder(recipe: WorldModelRecipe, shape: tuple[int, ...]) -> nn.Module:
    if len(shape) == 3:
        if isinstance(recipe.encoder, MLPConfig):
            raise InputError(f"Observations are pictures {shape}, which an mlp does not take. Choose --encoder conv.")
        return recipe.encoder.build(shape, recipe.latent_dim)
    if len(shape) != 1:
        raise InputError(
            f"Observations have the shape {shape}: they are neither pictures (height, width, channels) nor vectors. "
            "Give grey pictures a channel, as in array[..., None], or flatten what is no picture."
        )
    if isinstance(recipe.encoder, ConvConfig):
        raise InputError(f"Observations have the shape {shape}: they are no pictures. Choose --encoder mlp.")
    return recipe.encoder.build(shape[0], recipe.latent_dim)


def _energy(config: LatentEnergy, dim: int) -> nn.Module:
    if config.embedding is None:
        return config.learning.build(EmbeddedEnergy(config.head.build(dim)))
    embedding = config.embedding.build(dim, config.width)
    return config.learning.build(EmbeddedEnergy(config.head.build(config.width), embedding))


def _horizon(recipe: WorldModelRecipe) -> int:
    return recipe.model.horizon if isinstance(recipe.model, Predictive) else 1


def episodes_too_short(recipe: WorldModelRecipe, lengths: np.ndarray) -> int:
    """How many episodes of so many rows have no window: nothing is learned from them."""
    return int((lengths <= _horizon(recipe) * recipe.stride).sum())


def build_windows(recipe: WorldModelRecipe, data: HeldOut, *, held: bool = False, rows: int | None = None) -> Batches:
    """The stream of this process's share of every (micro-)batch, from the episodes to learn from or those held out."""
    windows = WindowStream(
        data.episodes,
        rows or recipe.training.batch_size // recipe.training.accumulate,
        recipe.seed,
        horizon=_horizon(recipe),
        skip=recipe.stride,
        history=recipe.history,
        x=data.x,
        u=data.u,
        z=data.z,
        episodes=data.held if held else data.learnt,
        preload=recipe.preload or isinstance(data.episodes, EpisodeArrays),  # or pictures would be drawn step by step
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
