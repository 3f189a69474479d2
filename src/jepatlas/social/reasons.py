"""Why the latents of an agent may have collapsed: each reason is a sentence, or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.objectives.vision.momentum import Rise, momentum_at
from jepatlas.training.journal import last_metrics

__all__ = ["beginning_left", "spent_on", "uniform_assignments"]

MOST_OF_IT = 0.5  # of a variance
FEW = 5  # images, for each value of a column: of fewer, a value would be told by chance
MUCH = 0.1  # of a slow copy that is still its random beginning
EVEN = 0.9  # of the largest entropy: crops are hardly told apart by what they are assigned to
SHARPER = {"code_entropy": "smoothness", "teacher_entropy": "temperature.teacher"}
"""Entropies that objectives with prototypes log, and the option that makes assignments less even."""


def spent_on(h_bd: np.ndarray, columns: Mapping[str, np.ndarray]) -> str:
    """What latents are spent on: the column of the table that their first direction tells, where it has most of the
    variance. Crops of one image share its light or its background, so these may be all that it takes to match them."""
    centred = h_bd.astype(np.float64) - h_bd.mean(0, dtype=np.float64)
    left, sigma, _ = np.linalg.svd(centred, full_matrices=False)
    share = sigma[0] ** 2 / max(float(np.square(sigma).sum()), 1e-300)
    told = {name: _told(left[:, 0], values) for name, values in columns.items()}
    name = max(told, key=lambda one: told[one], default=None)
    if name is None or share < MOST_OF_IT or told[name] < MOST_OF_IT:
        return ""
    return (f"One direction has {share:.0%} of the variance, and {told[name]:.0%} of that is told by the column "
            f"{name!r}. Where that is not what latents are for, let it vary less, or hide it by stronger "
            "augmentation.")  # fmt: skip


def _told(x_b: np.ndarray, values: np.ndarray) -> float:
    """The share of the variance that lies between the values of a column, less what chance would put there."""
    names, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    n, kinds, total = len(x_b), len(names), float(np.square(x_b - x_b.mean()).sum())
    if not 1 < kinds <= n / FEW or total == 0:
        return 0.0
    means = np.bincount(place, x_b) / counts
    within = float(np.square(x_b - means[place]).sum())
    return 1 - within / (n - kinds) / (total / (n - 1))


def uniform_assignments(objective: Any, folder: Path) -> str:
    """What is to be said where all prototypes are assigned to all crops at the end of a run; else nothing."""
    metrics = last_metrics(folder)
    prototypes = getattr(getattr(objective, "head", objective), "prototypes", 1)
    for name, option in SHARPER.items():
        found = metrics.get(name, math.nan)
        if found > EVEN * math.log(prototypes):
            return (f"Assignments to prototypes are nearly uniform (entropy {found:.2f} of ln {prototypes} = "
                    f"{math.log(prototypes):.2f}): lower --objective.{option}.")  # fmt: skip
    return ""


def beginning_left(objective: Any, steps: int) -> str:
    """How much of a slow copy is still what it was at first, where that is much: the product of its momenta."""
    if not hasattr(objective, "momentum"):
        return ""
    rise: Rise = getattr(objective, "rise", "cosine")
    left = math.prod(momentum_at(objective.momentum, step, steps, rise) for step in range(steps))
    return (f"{left:.0%} of the slow copy that it learns from is still its random beginning: lower "
            "--objective.momentum, or train for more steps.") if left >= MUCH else ""  # fmt: skip
