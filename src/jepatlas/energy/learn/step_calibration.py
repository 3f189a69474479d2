"""Calibration of an energy from step costs: the factor at which observed steps have the length of their cost.

    scale = Σ (cost − floor·‖x − x'‖) / Σ head(φ(x), φ(x'))        over held-out steps with x ≠ x'

Learning bounds each step by its cost only within a tolerance, and lengths add up along paths, so all energies are off
by about the same factor as steps. The ratio of sums allows for steps of cost 0.

Steps that cost more than the cheapest path between their ends make the scale too large; leave them out if they are
frequent.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Experience
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import bootstrap
from jepatlas.energy.learn.embedded import EmbeddedEnergy

__all__ = ["calibrate", "step_scale"]


def calibrate(energy: EmbeddedEnergy, held_out: Experience, seed: int = 0) -> Estimate:
    """Set the scale of an energy from held-out steps, and return it with an interval over episodes."""
    moved = (held_out.x != held_out.x_next).any(1)
    if not moved.any():
        raise InputError("held_out must contain steps that move, but x equals x_next in all of them.")
    x, x_next = held_out.x[moved], held_out.x_next[moved]
    cost = held_out.cost[moved] - energy.floor * np.linalg.norm(x_next - x, axis=1)
    estimate = step_scale(_head_lengths(energy, x, x_next), cost, held_out.episode[moved], seed)
    energy.scale.fill_(estimate.value)
    return estimate


def step_scale(length: np.ndarray, cost: np.ndarray, episode: np.ndarray, seed: int = 0) -> Estimate:
    """Σ cost / Σ length with a bootstrap interval over episodes, or over blocks of steps of a single episode."""
    if not length.sum() > 0:
        raise InputError("The held-out steps have total length 0. Train longer.")
    if not cost.sum() > 0:
        raise InputError(
            f"The held-out steps must cost more than the floor, but their total beyond it is {cost.sum():.3g}. Lower "
            "the floor."
        )
    count = len(cost)
    single = len(np.unique(episode)) == 1
    groups = np.arange(count) // math.isqrt(count) if single else episode

    def scale(weights: np.ndarray) -> dict[str, float]:
        return {"scale": float(weights @ cost / max(weights @ length, np.finfo(float).tiny))}

    return bootstrap(scale, count, numpy_generator(seed, "calibration"), groups=groups)["scale"]


@torch.no_grad()
def _head_lengths(energy: EmbeddedEnergy, x: np.ndarray, x_next: np.ndarray) -> np.ndarray:
    """head(φ(x), φ(x')), without scale and floor."""
    u, v = (
        energy.embed(torch.as_tensor(rows, dtype=torch.float32, device=energy.scale.device)) for rows in (x, x_next)
    )
    return energy.head(u, v).double().cpu().numpy()
