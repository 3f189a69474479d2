"""What one trial of Social-JEPA's study does: train one agent on its view, and keep its latents of all states.

Beside the latents lie those of the same network before its first step, which is what an untrained agent is, and small
images for PCA. Where agents see the same images, a view is the pipeline that augments them. What two agents have in
common is found out when the experiment concludes.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social.scenes import source_of
from jepatlas.recipes import VisionRecipe, build_crops, build_vision, read_images
from jepatlas.recipes.image_sources import AnyImages
from jepatlas.training import last_metrics
from jepatlas.training.flops import step_flops
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import Seeing, collapse_verdict, latents_of, load_agent
from jepatlas.worlds.objects import RenderedObjects

__all__ = ["LATENTS", "kept_rows", "pipeline_of", "recipe_of", "run", "train_and_keep"]

LATENTS = "latents.npz"


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_keep(recipe_of(settings), settings["most"], Path(folder))


def recipe_of(settings: dict[str, Any]) -> VisionRecipe:
    """The recipe of a trial, with the images of its scene."""
    images = source_of(settings["scene"], from_plain(RenderedObjects, settings["world"]))
    return replace(from_plain(VisionRecipe, settings["recipe"]), images=images)


def train_and_keep(recipe: VisionRecipe, most: int, folder: Path, judged: AnyImages | None = None) -> dict[str, Any]:
    """Train (or go on), encode, and tell what it cost and whether the latents collapsed.

    Latents are of the images that the agent learned from and of those held out, or of `judged` ones in their place.
    """
    record = train_job(to_plain(recipe), str(folder))
    if record["status"] != "finished":
        return record
    agent = load_agent(folder)
    untrained = build_vision(recipe, agent.seen).to(recipe.training.device_here())
    cost = step_flops(untrained, build_crops(recipe, agent.seen), recipe.training.accumulate) * recipe.training.steps
    seen = agent.seen if judged is None else read_images(replace(recipe, images=judged))
    rows = kept_rows(seen.table.column("state"), most)
    arrays = _arrays(replace(agent, seen=seen), Seeing(recipe, untrained.eval(), seen), rows)
    write_arrays(folder / LATENTS, arrays)
    verdicts = [collapse_verdict(arrays["h"][arrays["held"]], _held_groups(arrays)), *_costs(folder, cost)]
    return record | {"verdicts": [verdict.to_json() for verdict in verdicts]}


def _held_groups(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    return arrays["groups"][arrays["held"]] if "groups" in arrays else None


def kept_rows(states: np.ndarray, most: int) -> np.ndarray:
    """All rows, or `most` of them: those whose states come first by a hash, so that agents of other views keep the
    same states."""
    if len(states) <= most:
        return np.arange(len(states))
    marks = [hashlib.blake2b(str(state).encode(), digest_size=8).digest() for state in states]
    return np.sort(np.argsort(marks, kind="stable")[:most])


def _arrays(agent: Seeing, untrained: Seeing, rows: np.ndarray) -> dict[str, np.ndarray]:
    recipe, held = agent.recipe, np.isin(rows, agent.seen.held)
    layers, pipeline = recipe.objective.kind == "ijepa" and recipe.shuffle is None, pipeline_of(recipe)
    arrays = latents_of(agent, rows, layers=layers, pipeline=pipeline)
    arrays["untrained"] = latents_of(untrained, rows, pipeline=pipeline)["h"]
    scored = {name: array[held] for name, array in arrays.items() if name.startswith("layer")}  # to be scored alone
    return arrays | scored | {"held": held}


def pipeline_of(recipe: VisionRecipe) -> str | None:
    """What makes the view of an agent where all see the same images: the first of its pipelines."""
    return next(iter(recipe.augmentation.pipelines), None) if recipe.view is None else None


def _costs(folder: Path, flops: int) -> list[Verdict]:
    loss = last_metrics(folder)["loss"]
    found = {"flops": flops, "loss": loss}
    return [Verdict.from_json(one) for one in as_verdicts({k: Estimate(v, v, v, 1) for k, v in found.items()}, "")]
