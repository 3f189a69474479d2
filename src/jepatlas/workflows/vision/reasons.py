"""Why the latents of an agent may have collapsed: each reason is a sentence, or nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.nn.ema import momentum_at
from jepatlas.nn.network_configs import Rise
from jepatlas.training import last_metrics

__all__ = ["beginning_left", "shortcut", "uniform_assignments", "widest"]

MOST_OF_IT = 0.5  # of the variance along a direction
FEW = 5  # images, for each value of a column: of fewer, a value would be told by chance
MUCH = 0.1  # of a slow copy that is still its random beginning
EVEN = 0.9  # of the largest entropy: crops are hardly told apart by what they are assigned to
SHARPER = {"code_entropy": "smoothness", "teacher_entropy": "temperature.teacher"}
"""Entropies that objectives with prototypes log, and the option that makes assignments less even."""


def widest(h_bd: np.ndarray) -> tuple[float, np.ndarray]:
    """The share of latents' variance that their first direction has, and where each of them lies along it: (b,)."""
    centred = h_bd.astype(np.float64) - h_bd.mean(0, dtype=np.float64)
    left, sigma, _ = np.linalg.svd(centred, full_matrices=False)
    return float(sigma[0] ** 2 / max(np.square(sigma).sum(), np.finfo(float).tiny)), left[:, 0]


def shortcut(x_b: np.ndarray, columns: Mapping[str, np.ndarray]) -> str:
    """Which column of the table tells where images lie along a direction, if one tells most of it. Crops of one image
    share its light or its background, so these may be all that it takes to match them."""
    told = {name: _told(x_b, values) for name, values in columns.items()}
    name = max(told, key=lambda one: told[one], default=None)
    if name is None or told[name] < MOST_OF_IT:
        return ""
    return (
        f"Of that, {told[name]:.0%} is told by the column {name!r}: where it is not what latents are for, let it "
        "vary less, or hide it by stronger augmentation."
    )


def _told(x_b: np.ndarray, values: np.ndarray) -> float:
    """The share of the variance that lies between the values of a column or, where almost every image has another one,
    along them as numbers; less what chance would put there."""
    names, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    n, kinds, total = len(x_b), len(names), float(np.square(x_b - x_b.mean()).sum())
    if kinds < 2 or total == 0:
        return 0.0
    if kinds <= n / FEW:
        means = np.bincount(place, x_b) / counts
        return _adjusted(float(np.square(x_b - means[place]).sum()), total, n, kinds)
    numbers = _numbers(values)
    return 0.0 if numbers is None else _adjusted((1 - np.corrcoef(numbers, x_b)[0, 1] ** 2) * total, total, n, 2)


def _adjusted(within: float, total: float, n: int, free: int) -> float:
    return 1 - within / max(n - free, 1) / (total / (n - 1))


def _numbers(values: np.ndarray) -> np.ndarray | None:
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def uniform_assignments(objective: Any, folder: Path) -> str:
    """What is to be said where all prototypes are assigned to all crops at the end of a run; else nothing."""
    metrics = last_metrics(folder)
    prototypes = getattr(getattr(objective, "head", objective), "prototypes", 1)
    for name, option in SHARPER.items():
        found = metrics.get(name, math.nan)
        if found > EVEN * math.log(prototypes):
            return (
                f"Assignments to prototypes are nearly uniform (entropy {found:.2f} of ln {prototypes} = "
                f"{math.log(prototypes):.2f}): lower --objective.{option}."
            )
    return ""


def beginning_left(objective: Any, steps: int) -> str:
    """How much of a slow copy is still what it was at first, where that is much: the product of its momenta."""
    if not hasattr(objective, "momentum"):
        return ""
    rise: Rise = getattr(objective, "rise", "cosine")
    left = math.prod(momentum_at(objective.momentum, step, steps, rise) for step in range(steps))
    return (
        (
            f"{left:.0%} of the slow copy that it learns from is still its random beginning: lower "
            "--objective.momentum, or train for more steps."
        )
        if left >= MUCH
        else ""
    )
