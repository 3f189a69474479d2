"""What a trial of `reacher-isotropisation` does: weigh a motion's pairs toward an isotropic Gaussian, and learn from
pairs that are drawn by their weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain
from jepatlas.core.records import Estimate, Pairs
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import WindowStream
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.reacher.reacher_agents import learn, reacher_of
from jepatlas.experiments.reacher.reacher_runs import measured
from jepatlas.identifiability import Isotropised, fit_isotropy, isotropic_resample
from jepatlas.recipes import EpisodeSplit, WorldModelRecipe, gather_episodes

__all__ = ["WeightedPairs", "isotropised", "run"]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    recipe = from_plain(WorldModelRecipe, settings["recipe"])
    with reacher_of(recipe):
        data = gather_episodes(recipe.source, recipe.seed)
        windows = _windows(recipe, data)
        found = isotropised(windows, settings["dose"])
        record, model = learn(recipe, Path(folder), data, WeightedPairs(windows, found.weights))
        return record if model is None else record | {"verdicts": measured(model, settings["poses"]) + _paid(found)}


def _windows(recipe: WorldModelRecipe, data: EpisodeSplit) -> WindowStream:
    """All pairs of frames of the episodes to learn from."""
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
    """Weights of all windows of two frames, in coordinates of the true state: the best case."""
    states = WindowStream(
        windows.source, 1, windows.seed, skip=windows.skip, x=windows.z or "", u=windows.u, episodes=windows.episodes
    )
    z, z_next = states.windows(np.arange(states.count)).frames.double().unbind(1)
    return fit_isotropy(z.numpy(), z_next.numpy(), seed=windows.seed).at(dose)


@dataclass(frozen=True)
class WeightedPairs:
    """The pairs of each training step, drawn anew from (seed, step), each window in proportion to its weight."""

    stream: WindowStream
    weights: np.ndarray  # (windows,)

    def __call__(self, step: int) -> Pairs:
        rng = numpy_generator(self.stream.seed, "weighted pairs", step)
        windows = self.stream.windows(isotropic_resample(self.weights, rng, self.stream.batch_size))
        assert windows.z is not None  # the weights are those of states
        return Pairs(*windows.frames.unbind(1), *windows.z.unbind(1))


def _paid(found: Isotropised) -> list[dict[str, Any]]:
    share, n = found.ess / len(found.weights), len(found.weights)
    spent = {"share": Estimate(share, share, share, n)}
    far = {"distance": Estimate(found.distance, found.distance, found.distance, n)}
    return as_verdicts(spent, "effective share of the pairs") + as_verdicts(far, "from the Gaussian", "lower")
