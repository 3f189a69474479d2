"""Chapters of the tour, the folder they work in, and the states that maps are fitted and scored on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from jepatlas.alignment.paired import Latents, PairedLatents
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.records import Record
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.recipes import build_objective
from jepatlas.workflows.runs import load_objective

__all__ = ["AGENT_NAMES", "SHOWN", "Chapter", "SharedStates", "Stage", "shared_states", "true_states"]

AGENT_NAMES = ("ada", "ben")
STATES = 10_000
SHOWN = 1500  # states in scatter plots


@dataclass(frozen=True)
class Stage:
    """Folder, seed and console of a tour. Chapters pass results on through the run folders of the agents."""

    folder: Path
    seed: int
    workers: int
    console: Console

    def agent(self, name: str) -> Path:
        return self.folder / "agents" / name


@dataclass(frozen=True)
class Chapter:
    """One step of the tour."""

    name: str
    title: str
    play: Callable[[Stage], Record]


@dataclass(frozen=True)
class SharedStates:
    """Fresh states, and the latents of both agents for them, with raw observations and untrained encoders."""

    z: np.ndarray  # (b, n)
    pairs: PairedLatents
    split: Split

    @property
    def latents(self) -> tuple[np.ndarray, np.ndarray]:
        return self.pairs.a.h, self.pairs.b.h


def true_states(stage: Stage) -> torch.Tensor:
    """States at which all agents are compared, the same for each."""
    recipe, _ = load_objective(stage.agent(AGENT_NAMES[0]))
    return recipe.world.states(STATES, torch_generator(stage.seed, "map states"))


def shared_states(stage: Stage) -> SharedStates:
    z = true_states(stage)
    ada, ben = (_latents(stage, name, z) for name in AGENT_NAMES)
    split = hold_out(STATES, numpy_generator(stage.seed, "map split"))
    return SharedStates(z.numpy(), PairedLatents(ada, ben), split)


def _latents(stage: Stage, name: str, z: torch.Tensor) -> Latents:
    recipe, objective = load_objective(stage.agent(name))
    x = recipe.world.observe(z)
    with torch.no_grad():
        h = objective.encode(x)
        untrained = build_objective(recipe).eval().encode(x)
    return Latents(name, h.double().numpy(), raw=x.double().numpy(), untrained=untrained.double().numpy())
