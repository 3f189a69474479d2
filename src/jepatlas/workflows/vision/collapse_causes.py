"""Likely causes of collapsed latents: a shortcut, slow target networks, or uniform assignments to prototypes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jepatlas.nn.ema import momentum_at
from jepatlas.nn.network_configs import Rise
from jepatlas.objectives.vision import AnyVision
from jepatlas.training import last_metrics
from jepatlas.workflows.vision.vision_agent import VisionAgent

__all__ = ["initial_target_note", "leading_direction", "likely_causes", "shortcut_note", "uniform_assignments_note"]

LEGITIMATE_COLUMNS = ("path", "state", "view", "label", "group")  # columns that latents are expected to predict
SHORTCUT_SHARE = 0.5  # explained share of the variance that counts as a shortcut
MIN_IMAGES_PER_VALUE = 5  # for columns treated as categories
INITIAL_SHARE = 0.1  # share of the initial weights in a target network that is reported
UNIFORM_ENTROPY = 0.9  # share of the largest entropy from which assignments count as uniform
SHARPNESS_OPTIONS = {"code_entropy": "smoothness", "teacher_entropy": "temperature.teacher"}
"""Logged entropy → the option that lowers it."""


def likely_causes(agent: VisionAgent, rows: np.ndarray, h_bd: np.ndarray, folder: Path) -> str:
    """How the variance is distributed, and a shortcut or else slow targets and uniform assignments."""
    recipe = agent.recipe
    table = agent.seen.table
    share, along = leading_direction(h_bd)
    columns = {name: table.column(name)[rows] for name in table.columns if name not in LEGITIMATE_COLUMNS}
    notes = [f"One direction has {share:.0%} of the variance."]
    shortcut = shortcut_note(along, columns)
    if shortcut:
        notes.append(shortcut)
    else:
        notes.append(uniform_assignments_note(recipe.objective, folder))
        notes.append(initial_target_note(recipe.objective, recipe.training.steps))
    return " ".join(filter(None, notes))


def leading_direction(h_bd: np.ndarray) -> tuple[float, np.ndarray]:
    """Share of variance of the first principal direction, and the coordinates along it: (b,)."""
    centred = h_bd.astype(np.float64) - h_bd.mean(0, dtype=np.float64)
    left, sigma, _ = np.linalg.svd(centred, full_matrices=False)
    return float(sigma[0] ** 2 / max(np.square(sigma).sum(), np.finfo(float).tiny)), left[:, 0]


def shortcut_note(x_b: np.ndarray, columns: Mapping[str, np.ndarray]) -> str:
    """The table column that explains most of a direction, if any; else an empty string.

    Crops of one image share its lighting or background, which may suffice to match them.
    """
    explained = {name: _explained_variance(x_b, values) for name, values in columns.items()}
    name = max(explained, key=lambda one: explained[one], default=None)
    if name is None or explained[name] < SHORTCUT_SHARE:
        return ""
    return (
        f"Of that, {explained[name]:.0%} is explained by the column {name!r}. If latents should not encode it, reduce "
        "its variation or remove it by stronger augmentation."
    )


def _explained_variance(x_b: np.ndarray, values: np.ndarray) -> float:
    """Adjusted share of variance explained by a column as categories or, if values rarely repeat, as numbers."""
    _, category, counts = np.unique(values, return_inverse=True, return_counts=True)
    n = len(x_b)
    categories = len(counts)
    total = float(np.square(x_b - x_b.mean()).sum())
    if categories < 2 or total == 0:
        return 0.0
    if categories <= n / MIN_IMAGES_PER_VALUE:
        means = np.bincount(category, x_b) / counts
        residual = float(np.square(x_b - means[category]).sum())
        parameters = categories
    else:
        numbers = _as_numbers(values)
        if numbers is None:
            return 0.0
        residual = (1 - np.corrcoef(numbers, x_b)[0, 1] ** 2) * total
        parameters = 2
    return 1 - residual / max(n - parameters, 1) / (total / (n - 1))


def _as_numbers(values: np.ndarray) -> np.ndarray | None:
    try:
        numbers = values.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def uniform_assignments_note(objective: AnyVision, folder: Path) -> str:
    """A note if the assignments to prototypes were nearly uniform at the end of the run; else an empty string."""
    metrics = last_metrics(folder)
    prototypes = getattr(getattr(objective, "head", objective), "prototypes", 1)
    for name, option in SHARPNESS_OPTIONS.items():
        entropy = metrics.get(name, math.nan)
        if entropy > UNIFORM_ENTROPY * math.log(prototypes):
            return (
                f"Assignments to prototypes are nearly uniform (entropy {entropy:.2f} of ln {prototypes} = "
                f"{math.log(prototypes):.2f}): lower --objective.{option}."
            )
    return ""


def initial_target_note(objective: AnyVision, steps: int) -> str:
    """A note if the target network still contains much of its initial weights; else an empty string."""
    momentum = getattr(objective, "momentum", None)
    if momentum is None:
        return ""
    rise: Rise = getattr(objective, "rise", "cosine")
    remaining = math.prod(momentum_at(momentum, step, steps, rise) for step in range(steps))
    if remaining < INITIAL_SHARE:
        return ""
    return (
        f"The target network still has {remaining:.0%} of its random initial weights: lower --objective.momentum, or "
        "train for more steps."
    )
