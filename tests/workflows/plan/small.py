"""A small world model of two rooms, trained for a few steps, and agents with the true dynamics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jepatlas.energy import IQEConfig
from jepatlas.nn import ConvConfig, ResidualDynamicsConfig
from jepatlas.recipes import LatentEnergy, Predictive, WalkedWorld, WorldModelRecipe
from jepatlas.training import ConstantSchedule
from jepatlas.workflows.plan import PlanningAgent, euclidean
from jepatlas.workflows.runs import start_run
from jepatlas.worlds import LinearQuadratic, Rooms

__all__ = ["WORDS", "Integrator", "recipe", "run", "tracking_agent"]

WORDS = [
    "--steps",
    "4",
    "--batch-size",
    "8",
    "--schedule",
    "constant",
    "--source.episodes",
    "12",
    "--source.length",
    "20",
    "--encoder.channels",
    "8",
    "8",
    "--encoder.hidden",
    "16",
    "--latent-dim",
    "8",
    "--model.dynamics.width",
    "16",
]


def recipe(steps: int = 4, **changes: Any) -> WorldModelRecipe:
    """The recipe of the options `WORDS`, with an energy."""
    base = WorldModelRecipe(
        source=WalkedWorld(Rooms(), episodes=12, length=20),
        encoder=ConvConfig(channels=(8, 8), hidden=16),
        latent_dim=8,
        model=Predictive(dynamics=ResidualDynamicsConfig(16), energy=LatentEnergy(head=IQEConfig(chunks=4))),
    )
    training = replace(base.training, steps=steps, batch_size=8, schedule=ConstantSchedule())
    return replace(base, training=training, **changes)


def run(folder: Path, **changes: Any) -> Path:
    assert start_run(recipe(**changes), folder).status == "finished"
    return folder


class Integrator:
    """Dynamics x' = x + s u, which are exact in a world without walls whose latents are its states."""

    def __init__(self, step: float) -> None:
        self.step = step

    def rollout(self, h: Tensor, actions: Tensor) -> Tensor:
        return h[:, None] + (self.step * actions).cumsum(1)


def tracking_agent(world: Rooms | LinearQuadratic, step: float) -> PlanningAgent:
    """An agent that locates the red dot to within a pixel and has the true dynamics."""

    def locate(observations: np.ndarray) -> Tensor:
        red = observations[..., 0].astype(float) - observations[..., 2]
        weight = np.clip(red - 60, 0, None)
        rows, columns = np.mgrid[:64, :64]
        total = weight.sum((1, 2))
        x, y = ((weight * axis).sum((1, 2)) / total for axis in (columns, rows))
        return torch.from_numpy(np.stack([(x + 0.5) / 32 - 1, 1 - (y + 0.5) / 32], 1))

    return PlanningAgent(locate, Integrator(step), euclidean, 2)
