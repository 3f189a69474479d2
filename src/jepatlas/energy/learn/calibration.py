"""Calibration from step costs alone: the scale at which observed steps are as long as they cost.

    scale = Σ (cost − floor·‖x − x'‖) / Σ head(φ(x), φ(x'))        over held-out steps that moved

Learning bounds each step by its cost only within a tolerance, and lengths add up along a path: so all energies are off
by about the factor that steps are off by. A ratio of sums, not a mean of ratios, because steps may cost nothing.

A step that went nowhere says nothing of lengths. One that cost more than the cheapest way between its ends makes the
scale too large: where many are such, keep to steps that are not.
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
    """Set the energy's scale by steps it was not trained on; the scale, with an interval over episodes."""
    moved = (held_out.x != held_out.x_next).any(1)
    if not moved.any():
        raise InputError("Every held-out step ended where it began, so there is no length to calibrate by.")
    x, x_next = held_out.x[moved], held_out.x_next[moved]
    rest = held_out.cost[moved] - energy.floor * np.linalg.norm(x_next - x, axis=1)
    estimate = step_scale(head_lengths(energy, x, x_next), rest, held_out.episode[moved], seed)
    energy.scale.fill_(estimate.value)
    return estimate


def step_scale(length: np.ndarray, cost: np.ndarray, episode: np.ndarray, seed: int = 0) -> Estimate:
    """Σ cost / Σ length, with a bootstrap interval that draws whole episodes; of one episode, blocks of its steps."""
    if not length.sum() > 0 or not cost.sum() > 0:
        raise InputError(
            f"The held-out steps cost {cost.sum():.3g} beyond the floor and are {length.sum():.3g} long together; both "
            "must be positive. Train longer, or lower the floor."
        )
    count = len(cost)
    single = len(np.unique(episode)) == 1
    groups = np.arange(count) // math.isqrt(count) if single else episode

    def scale(weights: np.ndarray) -> dict[str, float]:
        return {"scale": float(weights @ cost / max(weights @ length, np.finfo(float).tiny))}

    return bootstrap(scale, count, numpy_generator(seed, "calibration"), groups=groups)["scale"]


@torch.no_grad()
def head_lengths(energy: EmbeddedEnergy, x: np.ndarray, x_next: np.ndarray) -> np.ndarray:
    """head(φ(x), φ(x')): without scale and floor."""
    u, v = (
        energy.embed(torch.as_tensor(rows, dtype=torch.float32, device=energy.scale.device)) for rows in (x, x_next)
    )
    return energy.head(u, v).double().cpu().numpy()
