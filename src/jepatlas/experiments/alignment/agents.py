"""Two agents that never met: one law seen through two mixings, trained from two seeds, asked about the same states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.config import to_plain
from jepatlas.core.seeding import torch_generator
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, WhiteningConfig
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, InvertibleMLP, LatentWorld, OrnsteinUhlenbeck, Spiral

__all__ = ["Meeting", "meet", "two_recipes"]

RHO = 0.95


@dataclass(frozen=True)
class Meeting:
    """Latents of both agents for the same fresh states, and these states, in float64."""

    a: np.ndarray
    b: np.ndarray
    z: np.ndarray


def two_recipes(
    scale: Scale,
    dim: int,
    steps: int,
    seed: int,
    objective: CovarianceConfig | InfoNCEConfig | WhiteningConfig | None = None,
) -> list[dict[str, Any]]:
    """Recipes of both agents, as plain data; LeJEPA where no other objective is given."""
    law = OrnsteinUhlenbeck(dim=dim, rho=RHO)
    recipes = [
        recipe_for(scale, LatentWorld(law, mixing), steps=steps, seed=2 * seed + agent)
        for agent, mixing in enumerate(_mixings(dim, seed))
    ]
    return [to_plain(recipe if objective is None else replace(recipe, objective=objective)) for recipe in recipes]


def _mixings(dim: int, seed: int) -> tuple[AnyMixing, AnyMixing]:
    if dim == 2:
        return Spiral(), Coupling(seed=seed)
    return InvertibleMLP(layers=2, seed=2 * seed), InvertibleMLP(layers=2, seed=2 * seed + 1)


def meet(
    recipes: list[dict[str, Any]], folder: str, states: int, seed: int, *, before_whitening: bool = False
) -> tuple[dict[str, Any], Meeting | None]:
    """Train both (or go on), and ask them about fresh states; no meeting where one of them was stopped.

    `before_whitening` takes what the encoder gives, which exact whitening leaves free up to any invertible matrix.
    """
    places = [Path(folder) / f"agent-{number}" for number in range(len(recipes))]
    records = [train_job(recipe, str(place)) for recipe, place in zip(recipes, places, strict=True)]
    if lost := [record for record in records if record["status"] != "finished"]:
        return lost[0], None
    agents = [load_objective(place) for place in places]
    z = agents[0][0].world.states(states, torch_generator(seed, "meeting"))
    with torch.no_grad():
        a, b = (
            (objective.encoder if before_whitening else objective.encode)(recipe.world.observe(z)).double().numpy()
            for recipe, objective in agents
        )
    return records[0], Meeting(a, b, z.double().numpy())
