"""Pairs of frames drawn with weights that bring the true states toward an isotropic Gaussian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Pairs
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import WindowStream
from jepatlas.identifiability import Isotropised, fit_isotropy, isotropic_resample
from jepatlas.recipes import EpisodeSplit, WorldModelRecipe

__all__ = ["WeightedPairs", "isotropised", "training_windows"]


def training_windows(recipe: WorldModelRecipe, data: EpisodeSplit) -> WindowStream:
    """All pairs of frames of the training episodes."""
    return WindowStream(
        data.episodes,
        recipe.training.batch_size,
        recipe.seed,
        skip=recipe.stride,
        x=data.x,
        u=data.u,
        z=data.z,
        episodes=data.learnt,
        preload=True,
    )


def isotropised(windows: WindowStream, dose: float) -> Isotropised:
    """Weights of all pairs of frames, computed from the true states."""
    states = WindowStream(
        windows.source, 1, windows.seed, skip=windows.skip, x=windows.z or "", u=windows.u, episodes=windows.episodes
    )
    z, z_next = states.windows(np.arange(states.count)).frames.double().unbind(1)
    return fit_isotropy(z.numpy(), z_next.numpy(), seed=windows.seed).at(dose)


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs of each training step, drawn from (seed, step) with probabilities proportional to the weights."""

    stream: WindowStream
    weights: np.ndarray  # (windows,)

    def __call__(self, step: int) -> Pairs:
        rng = numpy_generator(self.stream.seed, "weighted pairs", step)
        windows = self.stream.windows(isotropic_resample(self.weights, rng, self.stream.batch_size))
        assert windows.z is not None  # the weights are computed from states
        return Pairs(*windows.frames.unbind(1), *windows.z.unbind(1))
