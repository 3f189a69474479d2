"""A learned energy loaded from its run: calibrated on held-out steps, with a decision on which pairs are unreachable.

Both use observed steps only, from episodes that the energy was not trained on; no ground truth is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.contracts import Objective
from jepatlas.core.records import Estimate, Experience
from jepatlas.core.seeding import numpy_generator
from jepatlas.energy import (
    IEJEPA,
    EmbeddedEnergy,
    LeastAction,
    LeastActionConfig,
    PortedEnergy,
    calibrate,
    fit_least_action,
    later_pairs,
    unreachable_share,
    unreachable_threshold,
)
from jepatlas.recipes import EnergyRecipe, ExperienceSplit, build_energy, gather_experience, load_recipe
from jepatlas.workflows.energy.energy_files import EnergySpec, SavedEnergy
from jepatlas.workflows.runs import trained

__all__ = ["FittedEnergy", "all_pairs", "load_fitted"]

PAIRS = 20_000  # to choose the threshold, and as many to measure its error


@dataclass(frozen=True)
class FittedEnergy:
    """The energy of a run, with its data and its reachability threshold."""

    recipe: EnergyRecipe
    data: ExperienceSplit
    objective: Objective | None  # None if the energy is computed, on the observations
    energy: EmbeddedEnergy | LeastAction  # on latents
    scale: Estimate | None  # None for discounted values, which are not lengths of steps, and for computed energies
    threshold: float
    missed: Estimate  # share of held-out reachable pairs above the threshold

    def latents(self, x: np.ndarray) -> np.ndarray:
        """The input of the energy: the agent's latents of observations, or the observations themselves."""
        return _latents(self.objective, x)

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """E between all rows of observations."""
        return all_pairs(self.energy, self.latents(x))

    def between(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """E from every row of x to every row of y."""
        return all_pairs(self.energy, self.latents(x), self.latents(y))

    @property
    def gamma(self) -> float | None:
        """The discount; None if the values are not discounted."""
        return getattr(self.recipe.learning, "gamma", None)

    def saved(self) -> SavedEnergy:
        if isinstance(self.energy, LeastAction):
            return SavedEnergy.computed(self.energy)
        dim = self.data.width if self.recipe.agent is None else self.recipe.agent.dim
        return SavedEnergy(self.energy, EnergySpec.of(self.recipe, dim), self.threshold)


def load_fitted(folder: Path | str) -> FittedEnergy:
    """The energy of a run folder."""
    folder = Path(folder)
    recipe = load_recipe(folder, EnergyRecipe)
    data = gather_experience(recipe)
    if isinstance(recipe.learning, LeastActionConfig):
        return _computed(recipe, recipe.learning, data)
    objective: Any = trained(build_energy(recipe, data), recipe, folder)
    learner = objective.objective if isinstance(objective, IEJEPA) else objective
    energy: EmbeddedEnergy = learner.energy
    learned, held = (_with_latents(objective, part) for part in (data.learnt, data.held))
    with torch.no_grad():
        scale = calibrate(energy, held, recipe.seed) if recipe.learning.kind == "qrl" else None
    threshold, missed = _reachability(energy, learned, held, recipe.seed)
    return FittedEnergy(recipe, data, objective, energy, scale, threshold, missed)


def _computed(recipe: EnergyRecipe, config: LeastActionConfig, data: ExperienceSplit) -> FittedEnergy:
    energy = fit_least_action(data.learnt, config, held=data.held, seed=recipe.seed)
    return FittedEnergy(recipe, data, None, energy, None, float("inf"), Estimate.undefined())


@torch.no_grad()
def all_pairs(
    energy: EmbeddedEnergy | LeastAction | PortedEnergy, x: np.ndarray, y: np.ndarray | None = None
) -> np.ndarray:
    """E(x_i, y_j) as a numpy array; y defaults to x."""
    start, end = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, x if y is None else y))
    return energy.all_pairs(start, end).double().numpy()


def _reachability(energy: EmbeddedEnergy, learned: Experience, held: Experience, seed: int) -> tuple[float, Estimate]:
    """The threshold above which pairs are called unreachable, and the share of reachable pairs above it."""
    rng = numpy_generator(seed, "reachability")
    known = _later_energies(energy, learned, rng)
    one, other = rng.integers(len(learned.x), size=(2, PAIRS))
    any_pairs = _energies(energy, learned.x[one], learned.x[other])
    steps = _energies(energy, held.x, held.x_next)
    step = float(steps[steps > 0].mean()) if (steps > 0).any() else 1.0
    threshold = unreachable_threshold(known, any_pairs, step)
    return threshold, unreachable_share(_later_energies(energy, held, rng), threshold, len(np.unique(held.episode)))


def _later_energies(energy: EmbeddedEnergy, experience: Experience, rng: np.random.Generator) -> np.ndarray:
    """Energies from states to later states of their episodes, which are known to be reachable."""
    first, last = later_pairs(experience, PAIRS, rng)
    return _energies(energy, experience.x[first], experience.x_next[last])


@torch.no_grad()
def _energies(energy: EmbeddedEnergy, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    start, end = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y))
    return energy(start, end).double().numpy()


def _with_latents(objective: Objective, experience: Experience) -> Experience:
    return replace(experience, x=_latents(objective, experience.x), x_next=_latents(objective, experience.x_next))


@torch.no_grad()
def _latents(objective: Objective | None, x: np.ndarray) -> np.ndarray:
    if not isinstance(objective, IEJEPA):
        return x
    return objective.encode(torch.as_tensor(x, dtype=torch.float32)).double().numpy()
