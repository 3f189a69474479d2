"""Collapse check of an agent's latents: the effective number of dimensions, likely causes, and its crops.

The effective number of dimensions is the exponential of the entropy of the shares of variance along the principal
directions. Latents with fewer than two carry almost no information about an image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import group_numbers
from jepatlas.core.figures import ImagePanel, ImageRow, Images
from jepatlas.core.linear import subsample
from jepatlas.core.pictures import shrunk, spread_rows
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Crops, Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import student_quantile
from jepatlas.data.images import ImageStream, ViewTable
from jepatlas.nn.ema import momentum_at
from jepatlas.nn.network_configs import Rise
from jepatlas.objectives.vision import AnyVision
from jepatlas.recipes import ViewImages, VisionRecipe
from jepatlas.training import last_metrics
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision.vision_agent import VisionAgent, groups_of, load_agent, untrained_objective

__all__ = [
    "MIN_DIRECTIONS",
    "collapse_verdict",
    "crops_figure",
    "initial_target_note",
    "judge_latents",
    "labels_of",
    "leading_direction",
    "shortcut_note",
    "train_and_judge",
    "uniform_assignments_note",
]

MIN_DIRECTIONS = 2.0
MAX_IMAGES = 2000
JACKKNIFE_PARTS = 20
MIN_ROWS, MIN_GROUPS = 10, 5

LEGITIMATE_COLUMNS = ("path", "state", "view", "label", "group")  # columns that latents are expected to predict
SHORTCUT_SHARE = 0.5  # explained share of the variance that counts as a shortcut
MIN_IMAGES_PER_VALUE = 5  # for columns treated as categories
INITIAL_SHARE = 0.1  # share of the initial weights in a target network that is reported
UNIFORM_ENTROPY = 0.9  # share of the largest entropy from which assignments count as uniform
SHARPNESS_OPTIONS = {"code_entropy": "smoothness", "teacher_entropy": "temperature.teacher"}
"""Logged entropy → the option that lowers it."""

SHOWN_IMAGES, SHOWN_CROPS = 8, 4


def judge_latents(folder: Path) -> Record:
    """Check the latents of held-out images for collapse, and save the record `latents` with the agent's crops."""
    agent = load_agent(folder)
    rows = subsample(agent.seen.held, MAX_IMAGES)
    h_bd = agent.latents(rows)
    verdict = collapse_verdict(h_bd, groups_of(agent.seen, rows), _likely_causes(agent, rows, h_bd, folder))
    figure, arrays = crops_figure(agent.recipe, agent.seen)
    record = Record("Latents", verdict.advice, provenance(agent.recipe.seed), (verdict,), (figure,), arrays=arrays)
    record.save(folder, "latents")
    return record


def train_and_judge(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """A job of a sweep: train or resume, then check the latents of finished runs."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        result["verdicts"] += [verdict.to_json() for verdict in judge_latents(Path(folder)).verdicts]
    return result


def collapse_verdict(h_bd: np.ndarray, groups: np.ndarray | None = None, why: str = "") -> Verdict:
    """Whether the latents vary along at least two effective dimensions; `why` is appended to the advice if not.

    The interval is a jackknife over `groups` of related rows, or over rows. (A bootstrap repeats rows, which lowers the
    number of dimensions.) With too few rows or groups there is no threshold, because few rows span few dimensions.
    """
    h_bd = h_bd.astype(np.float64)
    dim = h_bd.shape[1]
    estimate, units = _jackknife(h_bd, groups)
    if len(h_bd) < MIN_ROWS or units < MIN_GROUPS:
        within = "" if units == len(h_bd) else f" in {units} groups"
        advice = (
            f"Collapse cannot be checked: {len(h_bd)} held-out images{within} are too few, since n images span at most "
            f"n − 1 dimensions. Hold out at least {MIN_ROWS} images, in at least {MIN_GROUPS} groups if there are any."
        )
        return Verdict.judge("directions", estimate, direction="higher", good=advice)
    if estimate.value >= MIN_DIRECTIONS:
        bad = (
            f"Possible collapse: the latents of held-out images have {estimate.value:.1f} [{estimate.low:.1f}, "
            f"{estimate.high:.1f}] effective dimensions of {dim}, not significantly more than 2. Use more held-out "
            "images or train longer; if that does not help, try another objective."
        )
    else:
        bad = (
            f"Collapsed: the latents of held-out images have {estimate.value:.1f} effective dimensions of {dim}. Try a "
            "smaller learning rate, more steps or another objective."
        )
    return Verdict.judge(
        "directions",
        estimate,
        direction="higher",
        threshold=MIN_DIRECTIONS,
        good=f"The latents of held-out images have {estimate.value:.1f} effective dimensions of {dim}.",
        bad=f"{bad} {why}".rstrip(),
    )


def _jackknife(h_bd: np.ndarray, groups: np.ndarray | None) -> tuple[Estimate, int]:
    """Effective dimensions with a Student interval, and the number of independent units (groups or rows)."""
    unit = group_numbers(groups, len(h_bd))
    units = int(unit.max(initial=-1)) + 1
    part = numpy_generator(0, "collapse").permutation(units)[unit] % JACKKNIFE_PARTS
    values = []
    for one in range(min(JACKKNIFE_PARTS, units)):
        if (part != one).any():
            values.append(_effective_dimensions(h_bd[part != one]))
    value, margin = _effective_dimensions(h_bd), np.inf
    if len(values) > 1:
        standard_error = np.sqrt((len(values) - 1) * np.var(values))
        margin = float(student_quantile(len(values) - 1) * standard_error)
    low = max(value - margin, min(value, 1.0))
    high = min(value + margin, float(h_bd.shape[1]))
    return Estimate(value, low, max(high, value), len(h_bd)), units


def _effective_dimensions(h_bd: np.ndarray) -> float:
    """exp(entropy of the shares of variance); 0 if the latents vary only by rounding."""
    if not len(h_bd):
        return 0.0
    h_bd = h_bd.astype(np.float64)
    variances = np.linalg.svd(h_bd - h_bd.mean(0), compute_uv=False) ** 2
    if variances.sum() <= 1e-8 * np.square(h_bd).sum():
        return 0.0
    shares = variances[variances > 0] / variances.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _likely_causes(agent: VisionAgent, rows: np.ndarray, h_bd: np.ndarray, folder: Path) -> str:
    """The state before training, then a shortcut or else slow targets and uniform assignments."""
    recipe, table = agent.recipe, agent.seen.table
    untrained = VisionAgent(recipe, untrained_objective(recipe, agent.seen), agent.seen)
    share, along = leading_direction(h_bd)
    columns = {name: table.column(name)[rows] for name in table.columns if name not in LEGITIMATE_COLUMNS}
    notes = [
        f"Before training it was {_effective_dimensions(untrained.latents(rows)):.1f}.",
        f"One direction has {share:.0%} of the variance.",
    ]
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
    n, categories, total = len(x_b), len(counts), float(np.square(x_b - x_b.mean()).sum())
    if categories < 2 or total == 0:
        return 0.0
    if categories <= n / MIN_IMAGES_PER_VALUE:
        means = np.bincount(category, x_b) / counts
        residual, parameters = float(np.square(x_b - means[category]).sum()), categories
    else:
        numbers = _as_numbers(values)
        if numbers is None:
            return 0.0
        residual, parameters = (1 - np.corrcoef(numbers, x_b)[0, 1] ** 2) * total, 2
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


def crops_figure(recipe: VisionRecipe, seen: ViewImages) -> tuple[Images, dict[str, np.ndarray]]:
    """Some training images and their crops in the first step, with the arrays of the figure."""
    labels = labels_of(seen.table, seen.learnt)
    rows = seen.learnt[spread_rows(len(seen.learnt), SHOWN_IMAGES, labels)]
    plan = recipe.augmentation.plan(recipe.objective)
    stream = ImageStream(seen.images, len(rows), recipe.seed, plan=plan, rows=rows, shuffle=recipe.shuffle)
    arrays = {"seen": shrunk(np.asarray(seen.images[rows]))}
    names = ["original"]
    for number, crop in enumerate(_ordered_crops(stream(0), stream.rows_of(0), rows)):
        arrays[f"crop_{number}"] = crop
        names.append(f"crop {number + 1}")
    note = f"Crops are drawn anew in every step (pipeline {', '.join(plan.pipelines)})"
    note += ", and so are masked patches." if plan.crops == "one" else "."
    if recipe.shuffle is not None:
        note += " Images are shuffled first, as the recipe specifies."
    figure = Images(
        title=f"Images of view {seen.table.views[0]} and the crops used for training",
        note=note,
        panels=[
            ImagePanel(
                captions=_captions(seen.table, rows),
                rows=[ImageRow(name, array) for name, array in zip(names, arrays, strict=True)],
            )
        ],
    )
    return figure, arrays


def _ordered_crops(crops: Crops, rows: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """The first crops as uint8 images, in the order of `wanted`."""
    order = [int(np.flatnonzero(rows == row)[0]) for row in wanted]
    found = []
    for crop in crops.all[:SHOWN_CROPS]:
        unit = crop if crop.is_floating_point() else crop / 255
        pixels = (255 * unit.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).numpy()
        found.append(shrunk(pixels[order]))
    return found


def labels_of(table: ViewTable, rows: np.ndarray) -> np.ndarray | None:
    """Labels of the rows; None if one is missing."""
    if "label" not in table.columns:
        return None
    labels = table.columns["label"][rows]
    return None if (labels == "").any() else labels


def _captions(table: ViewTable, rows: np.ndarray) -> list[str]:
    """The state of each row, with its label unless the state's name contains it."""
    states, labels = [str(state) for state in table.column("state")[rows]], labels_of(table, rows)
    if labels is None:
        return states
    return [state if label in state else f"{label}, {state}" for state, label in zip(states, labels, strict=True)]
