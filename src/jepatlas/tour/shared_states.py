"""States that all agents look at, each through its own mixing: what maps between them are fitted and scored on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from jepatlas.core.linear import Split, hold_out
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.recipes import build_objective
from jepatlas.tour.chapter import AGENT_NAMES, Stage
from jepatlas.workflows.runs import load_objective

__all__ = ["SHOWN", "SharedStates", "shared_states", "true_states"]

STATES = 10_000
SHOWN = 1500


@dataclass(frozen=True)
class SharedStates:
    """Fresh states, and what each of the two trained agents makes of them; beside it, what controls make of them."""

    z: np.ndarray  # (b, n)
    trained: tuple[np.ndarray, np.ndarray]
    raw: tuple[np.ndarray, np.ndarray]
    untrained: tuple[np.ndarray, np.ndarray]
    split: Split


def true_states(stage: Stage) -> torch.Tensor:
    """The same states for every agent, whoever asks."""
    recipe, _ = load_objective(stage.agent(AGENT_NAMES[0]))
    return recipe.world.states(STATES, torch_generator(stage.seed, "map states"))


def shared_states(stage: Stage) -> SharedStates:
    z = true_states(stage)
    charts: list[tuple[np.ndarray, ...]] = []
    for name in AGENT_NAMES:
        recipe, objective = load_objective(stage.agent(name))
        x = recipe.world.observe(z)
        with torch.no_grad():
            latents = (objective.encode(x), x, build_objective(recipe).eval().encode(x))
        charts.append(tuple(latent.double().numpy() for latent in latents))
    (ada, raw_a, new_a), (ben, raw_b, new_b) = charts
    split = hold_out(STATES, numpy_generator(stage.seed, "map split"))
    return SharedStates(z.numpy(), (ada, ben), (raw_a, raw_b), (new_a, new_b), split)
