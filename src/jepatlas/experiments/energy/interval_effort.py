"""Effort of deforming a map of the interval.

A map of [0, 1] is given by its inner knots. If these move at velocities u, linear between them, the effort is the
length of the slope of the velocity,

    L(φ, u)² = ∫u_x² dx = Σ (Δu)² / Δφ        +∞ if knots have met
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["IntervalEffort"]


@dataclass(frozen=True)
class IntervalEffort:
    """The effort of moving k inner knots of a map; Σ(Δu)² ≥ λ_min ‖u‖², and Δφ ≤ 1."""

    knots: int

    @property
    def floor(self) -> float:
        return 2 * float(np.sin(np.pi / (2 * (self.knots + 1))))

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        widths = torch.nn.functional.pad(x, (1, 1)).diff(dim=-1) + _end_of_interval(x)
        slopes = torch.nn.functional.pad(v, (1, 1)).diff(dim=-1)
        inside = (widths > 0).all(-1)
        squares = (slopes.square() / torch.where(widths > 0, widths, 1.0)).sum(-1)
        moving = squares > 0
        root = torch.where(moving, squares, 1.0).sqrt() * moving
        return torch.where(inside, root, torch.inf)


def _end_of_interval(x: Tensor) -> Tensor:
    """One in the place of the last width, which ends at 1 instead of 0."""
    return torch.nn.functional.one_hot(torch.tensor(x.shape[-1]), x.shape[-1] + 1).to(x)
