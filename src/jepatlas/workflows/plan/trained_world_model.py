"""A trained world model loaded from its run, and its latents of episodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.linear import subsample
from jepatlas.core.records import Experience
from jepatlas.data import RandomPolicy, stack_history
from jepatlas.energy import LeastAction, LeastActionConfig, fit_least_action
from jepatlas.recipes import (
    AnyActionWorld,
    EpisodeSplit,
    WorldModelRecipe,
    build_world_model,
    gather_episodes,
    load_recipe,
)
from jepatlas.workflows.runs import trained

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["LatentEpisodes", "TrainedModel", "latent_episodes", "latent_steps", "load_world_model"]

BATCH = 512  # observations encoded at once


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A recipe, the trained objective, and the episodes it was trained on and those held out."""

    recipe: WorldModelRecipe
    objective: Any  # a WorldModel, or an objective without dynamics
    data: EpisodeSplit

    @property
    def world(self) -> AnyActionWorld | None:
        """The world of the training episodes; None if their file does not record one."""
        return self.recipe.source.known_world(self.data.episodes)

    @property
    def explored(self) -> RandomPolicy | None:
        """The random policy that collected the training episodes; None if it is unknown."""
        return self.recipe.source.known_policy(self.data.episodes)

    @property
    def environment(self) -> str | None:
        """The id of the external environment that the episode file records, if any."""
        episodes = self.data.episodes
        environment = episodes.about.get("environment")
        return None if environment is None else str(environment)

    @cached_property
    def least_action(self) -> LeastAction | None:
        """The energy of the steps of the training episodes, if the recipe asks for it; computed on first use."""
        config = getattr(self.recipe.model, "energy", None)
        if not isinstance(config, LeastActionConfig):
            return None
        return fit_least_action(latent_steps(self), config, held=latent_steps(self, held=True), seed=self.recipe.seed)

    def encode(self, observations: np.ndarray) -> Tensor:
        """Latents of observations in the world's format, images with channels last: (b, …) → (b, d).

        With a history, frames are stacked by `stack_history`, (b, …, m c). A single frame, such as the image of a goal,
        is repeated.
        """
        starts = range(0, len(observations), BATCH)
        return torch.cat([self._encode(observations[i : i + BATCH]) for i in starts])

    def encode_rows(self, rows: np.ndarray) -> Tensor:
        """Latents of the observations at these rows of the episodes, read batch by batch: (b,) → (b, d)."""
        recipe, parts = self.recipe, []
        for i in range(0, len(rows), BATCH):
            observations = self.data.observations(rows[i : i + BATCH], recipe.history, recipe.stride)
            parts.append(self._encode(observations))
        return torch.cat(parts)

    def _encode(self, observations: np.ndarray) -> Tensor:
        single_frame = observations.shape[-1] == self.data.shape[0]
        if self.recipe.history > 1 and single_frame:
            observations = stack_history([observations], self.recipe.history)
        with torch.no_grad():
            return self.objective.encode(_as_input(observations))


def _as_input(observations: np.ndarray) -> Tensor:
    """Images with channels first, in uint8 or float32; other observations in float32."""
    images = observations.ndim == 4
    if images:
        observations = np.moveaxis(observations, -1, 1)
    tensor = torch.from_numpy(np.ascontiguousarray(observations))
    return tensor if images and tensor.dtype == torch.uint8 else tensor.float()


def load_world_model(folder: Path | str) -> TrainedModel:
    """Load a run of `jepatlas train world-model`, with its episodes."""
    folder = Path(folder)
    recipe = load_recipe(folder, WorldModelRecipe)
    data = gather_episodes(recipe.source, recipe.seed)
    return TrainedModel(recipe, trained(build_world_model(recipe, data), recipe, folder), data)


@dataclass(frozen=True)
class LatentEpisodes:
    """Latents of pairs of frames, `stride` steps apart, with the true states and the episode of each pair."""

    h: np.ndarray  # (b, d)
    h_next: np.ndarray  # (b, d)
    u: np.ndarray  # (b, a)
    z: np.ndarray | None  # (b, n)
    z_next: np.ndarray | None  # (b, n)
    episode: np.ndarray  # (b,)


def latent_episodes(model: TrainedModel, *, held: bool = True, most: int | None = None) -> LatentEpisodes:
    """All pairs of the held-out episodes (or the training episodes), or an even subsample of `most` pairs."""
    data, stride = model.data, model.recipe.stride
    lengths, offsets = data.episodes.lengths, data.episodes.offsets
    numbers = data.held if held else data.learnt
    chosen = numbers[lengths[numbers] > stride]
    if not len(chosen):
        raise InputError(f"No episode is longer than {stride} steps, so there are no pairs of frames.")
    starts = np.concatenate([int(offsets[i]) + np.arange(int(lengths[i]) - stride) for i in chosen])
    episode = np.repeat(chosen, lengths[chosen] - stride)
    if most is not None and len(starts) > most:
        kept = subsample(np.arange(len(starts)), most)
        starts, episode = starts[kept], episode[kept]
    rows, position = np.unique(np.stack([starts, starts + stride]), return_inverse=True)
    h, h_next = model.encode_rows(rows).double().numpy()[position.reshape(2, -1)]
    u = data.episodes.rows(data.u, starts[:, None] + np.arange(stride)).reshape(len(starts), -1)
    z, z_next = None, None
    if data.z is not None:
        z = data.episodes.rows(data.z, starts).astype(np.float64)
        z_next = data.episodes.rows(data.z, starts + stride).astype(np.float64)
    return LatentEpisodes(h, h_next, u, z, z_next, episode)


def latent_steps(model: TrainedModel, *, held: bool = False) -> Experience:
    """The latents of the training (or held-out) episodes as steps of cost one, `stride` frames apart.

    An episode gives `stride` sequences, which start at its first frames.
    """
    data, stride = model.data, model.recipe.stride
    first, sequence = [], []
    for episode in data.held if held else data.learnt:
        frames = int(data.episodes.offsets[episode]) + np.arange(int(data.episodes.lengths[episode]))
        for phase in range(stride):
            steps = frames[phase : len(frames) - stride : stride]
            first.append(steps)
            sequence.append(np.full(len(steps), len(sequence)))
    starts = np.concatenate(first)
    if not len(starts):
        raise InputError(f"No episode is longer than {stride} steps, so there are no steps between frames.")
    rows, position = np.unique(np.concatenate([starts, starts + stride]), return_inverse=True)
    h = model.encode_rows(rows).numpy()
    here, there = position.reshape(2, -1)
    return Experience(h[here], h[there], np.ones(len(starts)), np.concatenate(sequence))
