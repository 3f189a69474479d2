"""What trials of Social-JEPA's predictions do beside training: keep what an agent makes of states as it learns, or of
states of another world than the one it learned in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.config import from_plain
from jepatlas.core.linear import subsample
from jepatlas.core.records import Crops, Estimate
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social.runs import LATENTS, kept_rows, recipe_of, run, train_and_keep
from jepatlas.recipes import read_images
from jepatlas.recipes.image_sources import ObjectImages
from jepatlas.workflows.vision import Seeing, collapse_verdict, stages
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["held_out_loss", "run_elsewhere", "run_watched", "step_name"]

BATCH, MOST = 256, 1000  # held-out images that a loss is taken of, at once and in all


def run_elsewhere(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train in one world, and keep the latents of another, of which a share is held out from maps."""
    judged = ObjectImages(from_plain(RenderedObjects, settings["judged"]))
    return train_and_keep(recipe_of(settings), settings["most"], Path(folder), judged)


def run_watched(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train, and keep latents, held-out loss and directions before the first step and at every look."""
    record, place, looks = run(settings, folder), Path(folder), settings["looks"]
    if record["status"] != "finished":
        return record
    _thin(place / "checkpoints", looks)
    recipe, arrays = recipe_of(settings), read_arrays(place / LATENTS)
    seen, found = read_images(recipe), dict[str, float]()
    rows = kept_rows(seen.table.column("state"), settings["most"])
    for step, objective in stages(recipe, place):
        h = Seeing(recipe, objective.eval(), seen).latents(rows)
        loss, untold = held_out_loss(objective, seen.images[subsample(seen.held, MOST)])
        directions = collapse_verdict(h[arrays["held"]]).value
        arrays[step_name("h", step)] = h
        found |= {
            step_name(name, step): value
            for name, value in (("loss", loss), ("untold", untold), ("directions", directions))
        }
    write_arrays(place / LATENTS, arrays)
    estimates = {name: Estimate(value, value, value, 1) for name, value in found.items()}
    return record | {"verdicts": record["verdicts"] + as_verdicts(estimates, "As the agent learned.")}


def step_name(name: str, step: int) -> str:
    return f"{name}_at_{step}"


@torch.no_grad()
def held_out_loss(objective: Any, images: np.ndarray) -> tuple[float, float]:
    """I-JEPA's loss of images (b, height, width, 3), and the same as a share of the variance of its targets.

    A loss falls as well where all targets become alike; its share of their variance does not.
    """
    losses, targets, device = [], [], next(objective.parameters()).device
    for start in range(0, len(images), BATCH):
        x = torch.from_numpy(np.ascontiguousarray(images[start : start + BATCH])).permute(0, 3, 1, 2).to(device)
        losses.append(float(objective(Crops(x), start).total) * len(x))
        targets.append(objective.targets(x).flatten(0, 1))
    loss = sum(losses) / len(images)
    variance = float(torch.cat(targets).var(0, correction=0).mean())
    return loss, loss / variance if variance > 0 else float("nan")


def _thin(checkpoints: Path, looks: list[int]) -> None:
    """Checkpoints come at even steps and looks at doubled ones: the rest would fill the disk."""
    for path in checkpoints.glob("step-*"):
        if int(path.name.removeprefix("step-")) not in looks:
            shutil.rmtree(path)
