"""Trials that keep checkpoints of one training, and measure latents and the held-out loss at each of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.linear import subsample
from jepatlas.core.records import Crops
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.rules import exact_verdicts
from jepatlas.experiments.social.trained_agents import LATENTS, agent_trial, recipe_of, run_agent, stored_rows
from jepatlas.recipes import VisionRecipe, read_images
from jepatlas.workflows.vision import VisionAgent, checkpoint_objectives, collapse_verdict

__all__ = [
    "CHECKPOINTED",
    "LOSS_SHARE",
    "checkpoint_steps",
    "held_out_loss",
    "run_with_checkpoints",
    "step_key",
    "trials",
]

CHECKPOINTED = "ijepa-watched"
"""The objective of these agents, as stored in the names of trials."""
LOSS_SHARE = "untold"
"""Stored name of the loss as a share of the variance of its targets."""
BATCH_SIZE = 256
MAX_IMAGES = 1000
"""Held-out images of which a loss is taken."""


@dataclass(frozen=True)
class Schedule:
    """A training of which `count` checkpoints are measured, each after twice the steps of the one before."""

    steps: int
    count: int

    @property
    def first(self) -> int:
        return self.steps // 2 ** (self.count - 1)

    @property
    def measured(self) -> list[int]:
        """
        >>> Schedule(640, 6).measured
        [20, 40, 80, 160, 320, 640]
        """
        return [self.first * 2**number for number in range(self.count)]


SCHEDULES: dict[Scale, Schedule] = {"tiny": Schedule(4, 2), "small": Schedule(640, 6), "paper": Schedule(3360, 6)}
"""`small` trains longer than other agents, because longer training is what should help."""


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    found = []
    schedule = SCHEDULES[scale]
    for seed in seeds:
        for view in range(2):
            usual = agent_trial(scale, scene, view, seed)
            recipe = from_plain(VisionRecipe, usual.settings["recipe"])
            training = replace(
                recipe.training,
                steps=schedule.steps,
                checkpoint_every=schedule.first,
                keep=2**schedule.count,
            )
            recipe = replace(recipe, training=training)
            settings = usual.settings | {"recipe": to_plain(recipe), "looks": schedule.measured}
            found.append(Trial({**usual.at, "objective": CHECKPOINTED}, run_with_checkpoints, settings))
    return found


def checkpoint_steps(scale: Scale) -> list[int]:
    """Steps at which agents are measured; 0 is before training."""
    return [0, *SCHEDULES[scale].measured]


def step_key(name: str, step: int) -> str:
    return f"{name}_at_{step}"


def run_with_checkpoints(settings: Plain, folder: str) -> Plain:
    """Train, and store latents, held-out loss and directions before the first step and at every checkpoint."""
    record = run_agent(settings, folder)
    if record["status"] != "finished":
        return record
    place = Path(folder)
    _remove_other_checkpoints(place / "checkpoints", settings["looks"])
    recipe = recipe_of(settings)
    arrays = read_arrays(place / LATENTS)
    seen = read_images(recipe)
    rows = stored_rows(seen.table.column("state"), settings["most"])
    images = seen.images[subsample(seen.held, MAX_IMAGES)]
    found = {}
    for step, objective in checkpoint_objectives(recipe, place):
        h = VisionAgent(recipe, objective.eval(), seen).latents(rows)
        arrays[step_key("h", step)] = h
        loss, share = held_out_loss(objective, images)
        found[step_key("loss", step)] = loss
        found[step_key(LOSS_SHARE, step)] = share
        found[step_key("directions", step)] = collapse_verdict(h[arrays["held"]]).value
    write_arrays(place / LATENTS, arrays)
    return record | {"verdicts": record["verdicts"] + exact_verdicts(found, 1, "During training.")}


def _remove_other_checkpoints(checkpoints: Path, measured: list[int]) -> None:
    """Checkpoints are written at equal intervals and measured at doubled ones; the others would fill the disk."""
    for path in checkpoints.glob("step-*"):
        if int(path.name.removeprefix("step-")) not in measured:
            shutil.rmtree(path)


@torch.no_grad()
def held_out_loss(objective: Any, images: np.ndarray) -> tuple[float, float]:
    """I-JEPA's loss on images (b, height, width, 3), and the same as a share of the variance of its targets.

    A loss also falls if all targets become alike; its share of their variance does not.
    """
    device = next(objective.parameters()).device
    total = 0.0
    targets = []
    for start in range(0, len(images), BATCH_SIZE):
        batch = np.ascontiguousarray(images[start : start + BATCH_SIZE])
        x = torch.from_numpy(batch).permute(0, 3, 1, 2).to(device)
        total += float(objective(Crops(x), start).total) * len(x)
        targets.append(objective.targets(x).flatten(0, 1))
    loss = total / len(images)
    variance = float(torch.cat(targets).var(0, correction=0).mean())
    return loss, loss / variance if variance > 0 else float("nan")
