"""An agent on images, taken out of its run; and whether its latents say anything at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from jepatlas.base.linear import evenly
from jepatlas.base.provenance import provenance
from jepatlas.base.records import Estimate, Record, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.objectives.vision.momentum import Rise, momentum_at
from jepatlas.recipes import SeenImages, VisionRecipe, build_vision, load_recipe, see
from jepatlas.runs import train_job, trained
from jepatlas.social.latents import before_training, encode_images
from jepatlas.social.samples import crops_figure
from jepatlas.training.journal import last_metrics

__all__ = [
    "Seeing",
    "beginning_left",
    "collapse_verdict",
    "groups_of",
    "judge_latents",
    "load_agent",
    "train_and_judge",
    "uniform_assignments",
]

ENOUGH = 2.0  # directions: latents that vary along fewer say next to nothing of images
MOST = 2000  # images that are looked at
PARTS = 20  # of these, or of their groups, each left out in turn
FEW_ROWS, FEW_GROUPS = 10, 5
MUCH = 0.1  # of a slow copy that is still its random beginning
EVEN = 0.9  # of the largest entropy: crops are hardly told apart by what they are assigned to
SHARPER = {"code_entropy": "smoothness", "teacher_entropy": "temperature.teacher"}
"""Entropies that objectives with prototypes log, and the option that makes assignments less even."""


@dataclass(frozen=True)
class Seeing:
    """A trained agent, and the images of its view."""

    recipe: VisionRecipe
    objective: Any
    seen: SeenImages

    def latents(self, rows: np.ndarray) -> np.ndarray:
        """Of some of its images: (b, d)."""
        return encode_images(self.objective, self.seen.images, rows, self.recipe.shuffle)


def load_agent(folder: Path) -> Seeing:
    """On the device that it was trained on, where this machine has one."""
    recipe = load_recipe(folder, VisionRecipe)
    seen = see(recipe)
    objective = trained(build_vision(recipe, seen), recipe, folder)
    return Seeing(recipe, objective.to(recipe.training.device_here()), seen)


def judge_latents(folder: Path) -> Record:
    """Whether the latents of held-out images vary, and what the agent sees: kept as `records/latents.json`."""
    agent = load_agent(folder)
    held = agent.seen.held
    rows = evenly(held, MOST)
    verdict = collapse_verdict(agent.latents(rows), groups_of(agent.seen, rows), _why(agent, rows, folder))
    figure, arrays = crops_figure(agent.recipe, agent.seen)
    record = Record("Latents", verdict.advice, provenance(agent.recipe.seed), (verdict,), (figure,), arrays=arrays)
    record.save(folder, "latents")
    return record


def groups_of(seen: SeenImages, rows: np.ndarray) -> np.ndarray | None:
    """Which of these images are of one object or block of time; None where each stands for itself."""
    return seen.table.column("group")[rows] if "group" in seen.table.columns else None


def train_and_judge(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """One job of a sweep: train (or go on), then judge the latents of what was finished."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        result["verdicts"] += [verdict.to_json() for verdict in judge_latents(Path(folder)).verdicts]
    return result


def _why(agent: Seeing, rows: np.ndarray, folder: Path) -> str:
    """What there was before training, whether prototypes tell crops apart, and how much of a slow copy is still what it
    was at first."""
    recipe = agent.recipe
    untrained = Seeing(recipe, before_training(recipe, agent.seen), agent.seen)
    before = _directions(untrained.latents(rows).astype(np.float64))
    told = f"Before the first step it was {before:.1f}. {uniform_assignments(recipe.objective, folder)}".rstrip()
    left = beginning_left(recipe.objective, recipe.training.steps)
    if left < MUCH:
        return told
    return (f"{told} {left:.0%} of the slow copy that it learns from is still its random beginning: lower "
            "--objective.momentum, or train for more steps.")  # fmt: skip


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


def beginning_left(objective: Any, steps: int) -> float:
    """The share of a slow copy's first weights in its last: the product of its momenta. 0 where there is none."""
    if not hasattr(objective, "momentum"):
        return 0.0
    rise: Rise = getattr(objective, "rise", "cosine")
    return math.prod(momentum_at(objective.momentum, step, steps, rise) for step in range(steps))


def collapse_verdict(h_bd: np.ndarray, groups: np.ndarray | None = None, why: str = "") -> Verdict:
    """How many directions latents vary along: the exponential of the entropy of their shares of the variance.

    The interval is a jackknife's, by `groups` of rows that are alike where there are any, each left out in turn. (A
    bootstrap draws rows twice, which vary along fewer directions than the rows do.) Few rows vary along few directions
    whatever the agent is, so that of them nothing is said.
    """
    h_bd = h_bd.astype(np.float64)
    found, units = _jackknifed(h_bd, groups)
    if len(h_bd) < FEW_ROWS or units < FEW_GROUPS:
        return Verdict.judge("directions", found, direction="higher", good=_too_few(len(h_bd), units))
    return Verdict.judge(
        "directions",
        found,
        direction="higher",
        threshold=ENOUGH,
        good=f"Latents of held-out images vary along {found.value:.1f} of {h_bd.shape[1]} directions.",
        bad=f"{_collapsed(found, h_bd.shape[1])} {why}".rstrip(),
    )


def _jackknifed(h_bd: np.ndarray, groups: np.ndarray | None) -> tuple[Estimate, int]:
    """Directions with Student's interval by what is left out in turn: groups, or parts of the rows; how many there are
    to choose from."""
    rows = np.arange(len(h_bd)) if groups is None else np.unique(groups, return_inverse=True)[1]
    units = int(rows.max(initial=-1)) + 1
    part = numpy_generator(0, "collapse").permutation(units)[rows] % PARTS
    left_out = [_directions(h_bd[part != one]) for one in range(min(PARTS, units)) if (part != one).any()]
    value, margin = _directions(h_bd), np.inf
    if len(left_out) > 1:
        spread = np.sqrt((len(left_out) - 1) * np.var(left_out))
        margin = float(stdtrit(len(left_out) - 1, 0.975) * spread)
    low, high = max(value - margin, min(value, 1.0)), min(value + margin, float(h_bd.shape[1]))
    return Estimate(value, low, max(high, value), len(h_bd)), units


def _directions(h_bd: np.ndarray) -> float:
    """0 where what varies is rounding."""
    if not len(h_bd):
        return 0.0
    values = np.linalg.svd(h_bd - h_bd.mean(0), compute_uv=False) ** 2
    return _effective(values) if values.sum() > 1e-8 * np.square(h_bd).sum() else 0.0


def _too_few(images: int, units: int) -> str:
    whole = "" if units == images else f" in {units} groups"
    return (
        f"Whether latents collapsed cannot be told: {images} held-out images{whole} are too few, for n of them vary "
        f"along n − 1 directions at most. Hold out at least {FEW_ROWS} images, of {FEW_GROUPS} groups where there are "
        "groups."
    )


def _collapsed(found: Estimate, dim: int) -> str:
    if found.value >= ENOUGH:
        return (
            f"Perhaps collapsed: {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] of {dim} directions, along "
            "which latents of held-out images vary, are not surely more than two. Judge by more held-out images, or "
            "train longer; where that does not help, try another objective."
        )
    return (
        f"Collapsed: latents of held-out images vary along {found.value:.1f} of {dim} directions, so "
        "almost all of them look alike to this agent. Try a smaller learning rate, more steps or another objective."
    )


def _effective(values: np.ndarray) -> float:
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
