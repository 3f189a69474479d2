"""Paired latents for alignment experiments: two independently trained agents, or linear charts with a known map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.alignment.paired import Latents, PairedLatents
from jepatlas.core.config import to_plain
from jepatlas.core.seeding import torch_generator
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.engine.latent_trials import recipe_for
from jepatlas.objectives import CovarianceConfig, InfoNCEConfig, WhiteningConfig
from jepatlas.workflows.runs import load_objective, train_job
from jepatlas.worlds import AnyMixing, Coupling, InvertibleMLP, LatentWorld, OrnsteinUhlenbeck, Spiral
from jepatlas.worlds.random_matrices import semi_orthogonal

__all__ = ["TrainedPair", "add_noise", "paired_recipes", "random_chart", "train_pair"]

RHO = 0.95


@dataclass(frozen=True)
class TrainedPair:
    """Latents of two agents for the same fresh states, and these states, in float64."""

    latents: PairedLatents
    z: np.ndarray

    @property
    def a(self) -> np.ndarray:
        return self.latents.a.h

    @property
    def b(self) -> np.ndarray:
        return self.latents.b.h


def paired_recipes(
    scale: Scale,
    dim: int,
    steps: int,
    seed: int,
    objective: CovarianceConfig | InfoNCEConfig | WhiteningConfig | None = None,
) -> list[dict[str, Any]]:
    """Plain recipes of two agents: one law, two mixings, two seeds. The default objective is LeJEPA."""
    law = OrnsteinUhlenbeck(dim=dim, rho=RHO)
    recipes = []
    for agent, mixing in enumerate(_mixings(dim, seed)):
        recipe = recipe_for(scale, LatentWorld(law, mixing), steps=steps, seed=2 * seed + agent)
        recipes.append(to_plain(recipe if objective is None else replace(recipe, objective=objective)))
    return recipes


def _mixings(dim: int, seed: int) -> tuple[AnyMixing, AnyMixing]:
    if dim == 2:
        return Spiral(), Coupling(seed=seed)
    return InvertibleMLP(layers=2, seed=2 * seed), InvertibleMLP(layers=2, seed=2 * seed + 1)


def train_pair(
    recipes: list[dict[str, Any]], folder: str, states: int, seed: int, *, before_whitening: bool = False
) -> tuple[dict[str, Any], TrainedPair | None]:
    """Train both agents or resume, and encode fresh states with both; None if one of them was stopped.

    `before_whitening` uses the encoder's output, which exact whitening determines only up to an invertible matrix.
    """
    places = [Path(folder) / f"agent-{number}" for number in range(len(recipes))]
    records = [train_job(recipe, str(place)) for recipe, place in zip(recipes, places, strict=True)]
    if lost := [record for record in records if record["status"] != "finished"]:
        return lost[0], None
    agents = [load_objective(place) for place in places]
    z = agents[0][0].world.states(states, torch_generator(seed, "meeting"))
    encoded = []
    with torch.no_grad():
        for number, (recipe, objective) in enumerate(agents, start=1):
            encode = objective.encoder if before_whitening else objective.encode
            h = encode(recipe.world.observe(z)).double().numpy()
            encoded.append(Latents(f"agent {number}", h))
    return records[0], TrainedPair(PairedLatents(*encoded), z.double().numpy())


def random_chart(dim: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """A = U diag(s) Vᵀ with log s evenly spaced from −½ log κ to ½ log κ, so that |det A| = 1.

    >>> float(np.linalg.cond(random_chart(5, 7.0, np.random.default_rng(0))).round(9))
    7.0
    """
    u = semi_orthogonal(dim, dim, rng)
    v = semi_orthogonal(dim, dim, rng)
    return (u * condition ** np.linspace(-0.5, 0.5, dim)) @ v.T


def add_noise(h: np.ndarray, noise: float, chart: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """h = A u plus white noise of `noise` times the root mean square of A u, for u with covariance I."""
    return h + noise * np.sqrt(np.square(chart).sum(1).mean()) * rng.standard_normal(h.shape)
