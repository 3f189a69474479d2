"""An agent on images, taken out of its run, and judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.linear import subsample
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.recipes import ViewImages, VisionRecipe, build_vision, load_recipe, read_images
from jepatlas.workflows.runs import train_job, trained
from jepatlas.workflows.vision.directions import collapse_verdict, effective_directions
from jepatlas.workflows.vision.latents import before_training, encode_images
from jepatlas.workflows.vision.reasons import beginning_left, shortcut, uniform_assignments, widest
from jepatlas.workflows.vision.samples import crops_figure

__all__ = ["Seeing", "groups_of", "judge_latents", "load_agent", "train_and_judge"]

MOST = 2000  # images that are looked at
WANTED = ("path", "state", "view", "label", "group")  # columns that latents may well tell


@dataclass(frozen=True)
class Seeing:
    """A trained agent, and the images of its view."""

    recipe: VisionRecipe
    objective: Any
    seen: ViewImages

    def latents(self, rows: np.ndarray) -> np.ndarray:
        """Of some of its images: (b, d)."""
        return encode_images(self.objective, self.seen.images, rows, self.recipe.shuffle)


def load_agent(folder: Path) -> Seeing:
    """On the device that it was trained on, where this machine has one."""
    recipe = load_recipe(folder, VisionRecipe)
    seen = read_images(recipe)
    objective = trained(build_vision(recipe, seen), recipe, folder)
    return Seeing(recipe, objective.to(recipe.training.device_here()), seen)


def judge_latents(folder: Path) -> Record:
    """Whether the latents of held-out images vary, and what the agent sees: kept as `records/latents.json`."""
    agent = load_agent(folder)
    held = agent.seen.held
    rows = subsample(held, MOST)
    h_bd = agent.latents(rows)
    verdict = collapse_verdict(h_bd, groups_of(agent.seen, rows), _why(agent, rows, h_bd, folder))
    figure, arrays = crops_figure(agent.recipe, agent.seen)
    record = Record("Latents", verdict.advice, provenance(agent.recipe.seed), (verdict,), (figure,), arrays=arrays)
    record.save(folder, "latents")
    return record


def groups_of(seen: ViewImages, rows: np.ndarray) -> np.ndarray | None:
    """Which of these images are of one object or block of time; None where each stands for itself."""
    return seen.table.column("group")[rows] if "group" in seen.table.columns else None


def train_and_judge(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """One job of a sweep: train (or go on), then judge the latents of what was finished."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        result["verdicts"] += [verdict.to_json() for verdict in judge_latents(Path(folder)).verdicts]
    return result


def _why(agent: Seeing, rows: np.ndarray, h_bd: np.ndarray, folder: Path) -> str:
    """What there was before training, and what may have spoiled it: a shortcut, or else what is slow or even."""
    recipe, table = agent.recipe, agent.seen.table
    untrained = Seeing(recipe, before_training(recipe, agent.seen), agent.seen)
    before = effective_directions(untrained.latents(rows))
    share, along = widest(h_bd)
    spent = shortcut(along, {name: table.column(name)[rows] for name in table.columns if name not in WANTED})
    others = (uniform_assignments(recipe.objective, folder), beginning_left(recipe.objective, recipe.training.steps))
    return " ".join(
        [
            f"Before the first step it was {before:.1f}. One direction has {share:.0%} of the variance.",
            *([spent] if spent else filter(None, others)),
        ]
    )
