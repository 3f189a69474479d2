"""Agents of the study: the recipe of each, and the trial that trains one and stores its latents.

Each agent sees one view and is trained from scratch. Agents of a pair share nothing, not even the seed: agent k of a
pair has the seed 2·seed + k. All experiments name their agents alike, so an agent that several of them need is
trained once.

A trial stores the latents of all states, those of the same network before its first step (the untrained control), and
small images for PCA. What two agents have in common is measured when the experiment concludes.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.data.images import Shuffle
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.experiments.social.agent_settings import PLANS, augmentation_of, objective_of, published_training
from jepatlas.experiments.social.scenes import SCENES, WORLDS, source_of
from jepatlas.recipes import VisionRecipe, build_crops, build_vision, read_images
from jepatlas.recipes.image_sources import AnyImages
from jepatlas.training import last_metrics
from jepatlas.training.flops import step_flops
from jepatlas.workflows.runs import train_job
from jepatlas.workflows.vision import VisionAgent, collapse_verdict, latents_of, load_agent
from jepatlas.worlds.objects import RenderedObjects

__all__ = [
    "LATENTS",
    "SHUFFLES",
    "agent_trial",
    "agent_trials",
    "recipe_of",
    "run_agent",
    "stored_rows",
    "train_and_store",
]

LATENTS = "latents.npz"
SHUFFLES = {"none": "unshuffled", "patches": "patches shuffled", "pixels": "pixels shuffled"}


def agent_trials(
    scale: Scale,
    scene: str,
    seeds: range,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> list[Trial]:
    """Both agents of a scene, for each seed."""
    trials = []
    for seed in seeds:
        for view in range(2):
            trials.append(agent_trial(scale, scene, view, seed, objective, shuffle=shuffle, number=number))
    return trials


def agent_trial(
    scale: Scale,
    scene: str,
    view: int,
    seed: int,
    objective: str = "ijepa",
    *,
    shuffle: str = "none",
    number: int | None = None,
) -> Trial:
    """One agent; `number` is the index of its encoder in the plan."""
    plan = PLANS[scale]
    own_seed = 2 * seed + view
    encoder = plan.encoders[plan.usual if number is None else number]
    recipe = VisionRecipe(
        seed=own_seed,
        view=SCENES[scene].views[view],
        size=plan.size,
        held=plan.held,
        shuffle=_shuffle(shuffle, encoder.patch, own_seed),
        fit="cover" if scene == "imagenet" else "stretch",
        augmentation=augmentation_of(scale, objective, SCENES[scene].pipelines[view]),
        encoder=encoder,
        objective=objective_of(scale, objective),
        training=published_training(scene) if scale == "paper" else plan.training,
    )
    place = {"scene": scene, "view": view, "objective": objective, "shuffle": shuffle, "width": encoder.width}
    settings = {"scene": scene, "most": plan.most, "recipe": to_plain(recipe), "world": to_plain(WORLDS[scale])}
    return Trial(place | {"seed": seed}, run_agent, settings)


def _shuffle(name: str, patch: int, seed: int) -> Shuffle | None:
    """A different order for every image and every agent: a common order would be shared information."""
    if name == "none":
        return None
    return Shuffle(patch if name == "patches" else 1, "image", seed)


def run_agent(settings: Plain, folder: str) -> Plain:
    """Train one agent and store its latents."""
    return train_and_store(recipe_of(settings), settings["most"], Path(folder))


def recipe_of(settings: Plain) -> VisionRecipe:
    """The recipe of a trial, with the images of its scene."""
    images = source_of(settings["scene"], from_plain(RenderedObjects, settings["world"]))
    return replace(from_plain(VisionRecipe, settings["recipe"]), images=images)


def train_and_store(recipe: VisionRecipe, most: int, folder: Path, judged: AnyImages | None = None) -> Plain:
    """Train (or resume), encode, and report the cost and whether latents collapsed.

    Latents are those of the agent's own images, or of `judged` ones in their place.
    """
    record = train_job(to_plain(recipe), str(folder))
    if record["status"] != "finished":
        return record
    agent = load_agent(folder)
    untrained = build_vision(recipe, agent.seen).to(recipe.training.device_here())
    flops = step_flops(untrained, build_crops(recipe, agent.seen), recipe.training.accumulate) * recipe.training.steps
    seen = agent.seen if judged is None else read_images(replace(recipe, images=judged))
    rows = stored_rows(seen.table.column("state"), most)
    arrays = _latents(replace(agent, seen=seen), VisionAgent(recipe, untrained.eval(), seen), rows)
    write_arrays(folder / LATENTS, arrays)
    held = arrays["held"]
    groups = arrays["groups"][held] if "groups" in arrays else None
    collapse = collapse_verdict(arrays["h"][held], groups)
    costs = point_estimates({"flops": flops, "loss": last_metrics(folder)["loss"]}, 1)
    return record | {"verdicts": [collapse.to_json(), *as_verdicts(costs, "")]}


def stored_rows(states: np.ndarray, most: int) -> np.ndarray:
    """At most `most` rows, chosen by a hash of their states so that all agents choose the same states."""
    if len(states) <= most:
        return np.arange(len(states))
    hashes = [hashlib.blake2b(str(state).encode(), digest_size=8).digest() for state in states]
    return np.sort(np.argsort(hashes, kind="stable")[:most])


def _latents(agent: VisionAgent, untrained: VisionAgent, rows: np.ndarray) -> dict[str, np.ndarray]:
    recipe = agent.recipe
    held = np.isin(rows, agent.seen.held)
    layers = recipe.objective.kind == "ijepa" and recipe.shuffle is None
    # Where both agents see the same images, the view of an agent is the first of its augmentation pipelines.
    pipeline = next(iter(recipe.augmentation.pipelines), None) if recipe.view is None else None
    arrays = latents_of(agent, rows, layers=layers, pipeline=pipeline)
    arrays["untrained"] = latents_of(untrained, rows, pipeline=pipeline)["h"]
    held_layers = {name: array[held] for name, array in arrays.items() if name.startswith("layer")}
    return arrays | held_layers | {"held": held}
