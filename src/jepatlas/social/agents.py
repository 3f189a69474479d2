"""An agent on images, taken out of its run; and whether its latents say anything at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.base.provenance import provenance
from jepatlas.base.records import Estimate, Record, Verdict
from jepatlas.base.seeding import numpy_generator
from jepatlas.recipes import SeenImages, VisionRecipe, build_vision, load_recipe, see
from jepatlas.runs import train_job, trained
from jepatlas.social.latents import encode_images
from jepatlas.social.samples import crops_figure

__all__ = ["Seeing", "collapse_verdict", "judge_latents", "load_agent", "train_and_judge"]

ENOUGH = 2.0  # directions: latents that vary along fewer say next to nothing of images
MOST = 2000  # images that are looked at
PARTS = 20  # of these, each left out in turn


@dataclass(frozen=True)
class Seeing:
    """A trained agent, and the images of its view."""

    recipe: VisionRecipe
    objective: Any
    seen: SeenImages

    def latents(self, rows: np.ndarray) -> np.ndarray:
        """Of some of its images: (b, d)."""
        return encode_images(self.objective, self.seen.images[rows], rows, self.recipe.shuffle)


def load_agent(folder: Path) -> Seeing:
    recipe = load_recipe(folder, VisionRecipe)
    seen = see(recipe)
    return Seeing(recipe, trained(build_vision(recipe, seen), recipe, folder), seen)


def judge_latents(folder: Path) -> Record:
    """Whether the latents of held-out images vary, and what the agent sees: kept as `records/latents.json`."""
    agent = load_agent(folder)
    rows = agent.seen.held[:MOST]
    verdict = collapse_verdict(agent.latents(rows))
    figure, arrays = crops_figure(agent.recipe, agent.seen)
    record = Record("Latents", verdict.advice, provenance(agent.recipe.seed), (verdict,), (figure,), arrays=arrays)
    record.save(folder, "latents")
    return record


def train_and_judge(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """One job of a sweep: train (or go on), then judge the latents of what was finished."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        result["verdicts"] += [verdict.to_json() for verdict in judge_latents(Path(folder)).verdicts]
    return result


def collapse_verdict(h_bd: np.ndarray, seed: int = 0) -> Verdict:
    """How many directions latents vary along: the exponential of the entropy of their shares of the variance.

    The interval is a jackknife's, by parts of the rows: a bootstrap draws rows twice, which vary along fewer directions
    than the rows do, so that its interval may lie below the value.
    """
    h_bd = h_bd.astype(np.float64)
    value, count = _directions(h_bd), min(PARTS, len(h_bd))
    part = numpy_generator(seed, "collapse").permutation(len(h_bd)) % count
    without = np.array([_directions(h_bd[part != one]) for one in range(count)])
    margin = 1.96 * float(np.sqrt((count - 1) * without.var()))
    found = Estimate(value, max(value - margin, 0.0), min(value + margin, float(h_bd.shape[1])), len(h_bd))
    return Verdict.judge(
        "directions",
        found,
        direction="higher",
        threshold=ENOUGH,
        good=f"Latents of held-out images vary along {found.value:.1f} of {h_bd.shape[1]} directions.",
        bad=_collapsed(found, h_bd.shape[1]),
    )


def _directions(h_bd: np.ndarray) -> float:
    """0 where what varies is rounding."""
    values = np.linalg.svd(h_bd - h_bd.mean(0), compute_uv=False) ** 2
    return _effective(values) if values.sum() > 1e-8 * np.square(h_bd).sum() else 0.0


def _collapsed(found: Estimate, dim: int) -> str:
    if found.value >= ENOUGH:
        return (
            f"Perhaps collapsed: {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] of {dim} directions, along "
            "which latents of held-out images vary, are not surely more than two. Judge by more held-out images, or "
            "train longer; where that does not help, try another objective."
        )
    return (
        f"Collapsed: latents of held-out images vary along {found.value:.1f} of {dim} directions, so "
        "almost all of them look alike to this agent. Try a smaller learning rate, a slow copy that follows faster in "
        "a short training (--objective.momentum, where there is one), or another objective."
    )


def _effective(values: np.ndarray) -> float:
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
