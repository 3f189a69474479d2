"""A trained world model, taken out of its run; and its latents of episodes that it has not learned from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.linear import subsample
from jepatlas.data import EpisodeFile, RandomPolicy, stack_history
from jepatlas.recipes import (
    AnyActionWorld,
    EpisodeSplit,
    WalkedWorld,
    WorldModelRecipe,
    build_world_model,
    gather_episodes,
    load_recipe,
    policy_of_file,
    world_of_file,
)
from jepatlas.workflows.runs import trained

__all__ = ["LatentEpisodes", "TrainedModel", "latent_episodes", "load_world_model"]

ROWS = 512  # observations that are encoded at once


@dataclass(frozen=True, eq=False)
class TrainedModel:
    recipe: WorldModelRecipe
    objective: Any
    data: EpisodeSplit

    @property
    def world(self) -> AnyActionWorld | None:
        """What it was trained on: a world, or the one that its file says the episodes are of."""
        if isinstance(self.recipe.source, WalkedWorld):
            return self.recipe.source.world
        return world_of_file(self.data.episodes) if isinstance(self.data.episodes, EpisodeFile) else None

    @property
    def explored(self) -> RandomPolicy | None:
        """The random policy that its episodes were walked by, where that is known."""
        if isinstance(self.recipe.source, WalkedWorld):
            motion = self.recipe.source.motion
            return motion if isinstance(motion, RandomPolicy) else None
        return policy_of_file(self.data.episodes) if isinstance(self.data.episodes, EpisodeFile) else None

    @property
    def environment(self) -> str | None:
        """The id of the foreign environment that its file says the episodes are of."""
        found = self.data.episodes.about.get("environment") if isinstance(self.data.episodes, EpisodeFile) else None
        return None if found is None else str(found)

    @torch.no_grad()
    def encode(self, observations: np.ndarray) -> Tensor:
        """Observations as a world gives them, pictures with channels last: (b, …) → (b, d).

        With a history, frames are stacked by `stack_history`, (b, …, m c); a single frame, such as
        the image of a goal, is repeated.
        """
        parts = [self._encode(observations[i : i + ROWS]) for i in _starts(len(observations))]
        return torch.cat(parts)

    @torch.no_grad()
    def encode_rows(self, rows: np.ndarray) -> Tensor:
        """What was seen at these rows of the episodes, (b,) → (b, d); no more of it is read at once than is encoded."""
        see, recipe = self.data.seen, self.recipe
        parts = [self._encode(see(rows[i : i + ROWS], recipe.history, recipe.stride)) for i in _starts(len(rows))]
        return torch.cat(parts)

    def _encode(self, observations: np.ndarray) -> Tensor:
        channels = self.data.shape[0]
        alone = self.recipe.history > 1 and observations.shape[-1] == channels
        given = stack_history([observations], self.recipe.history) if alone else observations
        return self.objective.encode(_for_network(given))


def load_world_model(folder: Path) -> TrainedModel:
    recipe = load_recipe(folder, WorldModelRecipe)
    data = gather_episodes(recipe.source, recipe.seed)
    return TrainedModel(recipe, trained(build_world_model(recipe, data), recipe, folder), data)


@dataclass(frozen=True)
class LatentEpisodes:
    """Latents of pairs of frames, `stride` steps apart, with the truth and the episode of each."""

    h: np.ndarray  # (b, d)
    h_next: np.ndarray  # (b, d)
    u: np.ndarray  # (b, a)
    z: np.ndarray | None  # (b, n)
    z_next: np.ndarray | None  # (b, n)
    episode: np.ndarray  # (b,)


def latent_episodes(model: TrainedModel, *, held: bool = True, most: int | None = None) -> LatentEpisodes:
    """All pairs of the held-out episodes (or those that were learned from), or evenly `most` of them."""
    data, stride = model.data, model.recipe.stride
    lengths, offsets = data.episodes.lengths, data.episodes.offsets
    numbers = data.held if held else data.learnt
    chosen = numbers[lengths[numbers] > stride]
    if not len(chosen):
        raise InputError(f"No episode is longer than {stride} steps, so there are no pairs of frames.")
    counts = lengths[chosen] - stride
    starts = np.concatenate([int(offsets[i]) + np.arange(int(lengths[i]) - stride) for i in chosen])
    episode = np.repeat(chosen, counts)
    if most is not None and len(starts) > most:
        kept = subsample(np.arange(len(starts)), most)
        starts, episode = starts[kept], episode[kept]
    rows, place = np.unique(np.stack([starts, starts + stride]), return_inverse=True)
    h = model.encode_rows(rows).double().numpy()[place.reshape(2, -1)]
    u = data.episodes.rows(data.u, starts[:, None] + np.arange(stride)).reshape(len(starts), -1)
    z, z_next = (
        None if data.z is None else data.episodes.rows(data.z, at).astype(np.float64)
        for at in (starts, starts + stride)
    )
    return LatentEpisodes(h[0], h[1], u, z, z_next, episode)


def _for_network(observations: np.ndarray) -> Tensor:
    given = np.moveaxis(observations, -1, 1) if observations.ndim == 4 else observations  # pictures
    found = torch.from_numpy(np.ascontiguousarray(given))
    return found if found.dtype == torch.uint8 and found.ndim == 4 else found.float()


def _starts(count: int) -> range:
    return range(0, count, ROWS)
