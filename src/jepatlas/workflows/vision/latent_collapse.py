"""Collapse check of an agent's latents: the effective number of dimensions and likely causes.

The effective number of dimensions is the exponential of the entropy of the shares of variance along the principal
directions. Latents with fewer than two carry almost no information about an image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import group_numbers
from jepatlas.core.linear import subsample
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Estimate, Record, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import student_quantile
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision.collapse_causes import likely_causes
from jepatlas.workflows.vision.crop_samples import crops_figure
from jepatlas.workflows.vision.vision_agent import VisionAgent, groups_of, load_agent, untrained_objective

__all__ = ["MIN_DIRECTIONS", "collapse_verdict", "judge_latents", "train_and_judge"]

MIN_DIRECTIONS = 2.0
MAX_IMAGES = 2000
JACKKNIFE_PARTS = 20
MIN_ROWS = 10
MIN_GROUPS = 5


def judge_latents(folder: Path) -> Record:
    """Check the latents of held-out images for collapse, and save the record `latents` with the agent's crops."""
    agent = load_agent(folder)
    rows = subsample(agent.seen.held, MAX_IMAGES)
    h_bd = agent.latents(rows)
    untrained = VisionAgent(agent.recipe, untrained_objective(agent.recipe, agent.seen), agent.seen)
    before = _effective_dimensions(untrained.latents(rows))
    why = f"Before training it was {before:.1f}. {likely_causes(agent, rows, h_bd, folder)}"
    verdict = collapse_verdict(h_bd, groups_of(agent.seen, rows), why)
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
    value = _effective_dimensions(h_bd)
    margin = np.inf
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
