"""A learned energy, taken out of its run: brought to the scale of observed steps, with a decision on what is out of
reach.

Both come from steps alone, and from episodes that the energy was not learned from: no truth is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.records import Estimate, Experience
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import (
    IEJEPA,
    EmbeddedEnergy,
    PortedEnergy,
    calibrate,
    later_pairs,
    unreachable_share,
    unreachable_threshold,
)
from jepatlas.recipes import EnergyRecipe, ExperienceSplit, build_energy, gather_experience, load_recipe
from jepatlas.workflows.energy.energy_file import EnergySpec, SavedEnergy
from jepatlas.workflows.runs import trained

__all__ = ["FittedEnergy", "load_fitted", "pairwise"]

PAIRS = 20_000  # that the threshold is chosen on, and as many to measure its error


@dataclass(frozen=True)
class FittedEnergy:
    """An energy of a run, with what it was learned from."""

    recipe: EnergyRecipe
    data: ExperienceSplit
    objective: Any
    energy: EmbeddedEnergy  # on latents
    scale: Estimate | None  # None for discounted values, which are not lengths of steps
    threshold: float
    missed: Estimate

    def latents(self, x: np.ndarray) -> np.ndarray:
        """What the energy takes: the agent's latents of observations, or the observations themselves."""
        return _latents(self.objective, x)

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """E from every row of observations to every other."""
        return pairwise(self.energy, self.latents(x))

    def between(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """E from every row of x to every row of y."""
        return pairwise(self.energy, self.latents(x), self.latents(y))

    @property
    def gamma(self) -> float | None:
        """The discount of what is learned; None where it is the energy itself."""
        return getattr(self.recipe.learning, "gamma", None)

    def saved(self) -> SavedEnergy:
        dim = self.data.width if self.recipe.agent is None else self.recipe.agent.dim
        return SavedEnergy(self.energy, EnergySpec.of(self.recipe, dim), self.threshold)


def load_fitted(folder: Path) -> FittedEnergy:
    """The energy of a run folder, ready for use."""
    recipe = load_recipe(folder, EnergyRecipe)
    data = gather_experience(recipe)
    objective = trained(build_energy(recipe, data), recipe, folder)
    energy: EmbeddedEnergy = (objective.objective if isinstance(objective, IEJEPA) else objective).energy
    learnt, held = (_on_latents(objective, part) for part in (data.learnt, data.held))
    with torch.no_grad():
        scale = calibrate(energy, held, recipe.seed) if recipe.learning.kind == "qrl" else None
    threshold, missed = _reachability(energy, learnt, held, recipe.seed)
    return FittedEnergy(recipe, data, objective, energy, scale, threshold, missed)


@torch.no_grad()
def pairwise(energy: EmbeddedEnergy | PortedEnergy, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """E(x_i, y_j) as numpy has it."""
    here, there = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, x if y is None else y))
    return energy.all_pairs(here, there).double().numpy()


def _reachability(energy: EmbeddedEnergy, learnt: Experience, held: Experience, seed: int) -> tuple[float, Estimate]:
    """Where energies count as out of reach, and how many known ways that is wrong about."""
    rng = numpy_generator(seed, "reachability")
    known = _along(energy, learnt, rng)
    one, other = rng.integers(len(learnt.x), size=(2, PAIRS))
    anyhow = _energies(energy, learnt.x[one], learnt.x[other])
    steps = _energies(energy, held.x, held.x_next)
    threshold = unreachable_threshold(known, anyhow, float(steps[steps > 0].mean()) if (steps > 0).any() else 1.0)
    return threshold, unreachable_share(_along(energy, held, rng), threshold, len(np.unique(held.episode)))


def _along(energy: EmbeddedEnergy, experience: Experience, rng: np.random.Generator) -> np.ndarray:
    """Energies from states to what came later in their episodes: ways that are known to be there."""
    first, last = later_pairs(experience, PAIRS, rng)
    return _energies(energy, experience.x[first], experience.x_next[last])


@torch.no_grad()
def _energies(energy: EmbeddedEnergy, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    here, there = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y))
    return energy(here, there).double().numpy()


def _on_latents(objective: Any, experience: Experience) -> Experience:
    return replace(experience, x=_latents(objective, experience.x), x_next=_latents(objective, experience.x_next))


@torch.no_grad()
def _latents(objective: Any, x: np.ndarray) -> np.ndarray:
    if not isinstance(objective, IEJEPA):
        return x
    return objective.encode(torch.as_tensor(x, dtype=torch.float32)).double().numpy()
