"""Trials of agents that choose their viewpoints: train one in rounds, and encode all states in two ways.

    one camera   from the camera that an agent with a single camera would have
    own          each state from the camera that the trained agent chooses for it, by the rule it was trained with

Losses are measured with random masks, so a choice could reflect the masks instead of the view. `advantage` therefore
uses other masks: it is the loss from the chosen cameras minus the mean over all cameras, in standard deviations.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.contracts import Objective
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Plain, Scale, Trial
from jepatlas.experiments.engine.rules import as_verdicts, point_estimates
from jepatlas.experiments.social.agent_settings import PLANS
from jepatlas.experiments.social.scenes import WORLDS
from jepatlas.experiments.social.trained_agents import LATENTS, agent_trials, stored_rows
from jepatlas.recipes import CameraChoiceRecipe, VisionRecipe, build_crops, build_vision
from jepatlas.recipes.image_sources import ObjectImages
from jepatlas.training import last_metrics
from jepatlas.training.flops import counted_flops, step_flops
from jepatlas.workflows.vision import (
    CameraChoice,
    CameraImages,
    VisionAgent,
    camera_losses,
    choices_of,
    choose_cameras,
    collapse_verdict,
    groups_of,
    latents_of,
    load_with_cameras,
    read_camera_images,
    train_with_cameras,
)

__all__ = ["CHOSEN", "advantage", "evenness", "run_viewpoints", "training_cost", "trials"]

COUNTED = 64
"""States whose forward passes are counted."""
SEEDS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 5}
ROUNDS: dict[Scale, int] = {"tiny": 2, "small": 6, "paper": 10}
"""A round is about two epochs. Looking at all states from four cameras costs nearly as much as training for one."""
RINGS: dict[Scale, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "tiny": ((0, 320), (160, 120)),
    "small": ((0, 40, 280, 320), (160, 120, 240, 200)),
    "paper": ((0, 40, 280, 320), (160, 120, 240, 200)),
}
"""Angles of each agent's cameras, its single camera first. One ring mirrors the other."""
CHOSEN = "chosen"
"""Folder of the latents, and part of the record, of states seen from the chosen cameras."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    fixed = agent_trials(scale, "rendered", range(seed, seed + SEEDS[scale]))
    return fixed + [_with_several_cameras(trial, scale, policy) for policy in ("random", "curious") for trial in fixed]


def _with_several_cameras(fixed: Trial, scale: Scale, policy: str) -> Trial:
    """The same agent, with the same initial weights and several cameras."""
    ring = RINGS[scale][int(fixed.at["view"])]
    world = replace(WORLDS[scale], cameras=4 if scale == "tiny" else 9)  # 160° apart: the first two are the usual ones
    agent = replace(from_plain(VisionRecipe, fixed.settings["recipe"]), images=ObjectImages(world))
    recipe = {
        "agent": to_plain(agent),
        "views": [f"camera{angle:03d}" for angle in ring],
        "policy": policy,
        "rounds": ROUNDS[scale],
    }
    settings = {"recipe": to_plain(from_plain(CameraChoiceRecipe, recipe)), "most": PLANS[scale].most}
    return Trial({**fixed.at, "policy": policy}, run_viewpoints, settings)


def run_viewpoints(settings: Plain, folder: str) -> Plain:
    """Train (or resume), choose a camera for every state, and encode from it and from the single camera."""
    recipe = from_plain(CameraChoiceRecipe, settings["recipe"])
    place = Path(folder)
    outcome = train_with_cameras(recipe, place)
    record = {"status": outcome.status, "step": outcome.step, "verdicts": []}
    if outcome.status != "finished":
        return record | {"verdicts": [outcome.verdict.to_json()] if outcome.verdict else []}
    camera_images = read_camera_images(recipe)
    objective = load_with_cameras(recipe, camera_images, place)
    untrained = build_vision(recipe.agent, camera_images.seen).to(recipe.training.device_here()).eval()
    states = camera_images.seen.table.column("state")[camera_images.rows[:, 0]]
    rows_sk = camera_images.rows[stored_rows(states, settings["most"])]
    choice = choose_cameras(recipe, camera_images, rows_sk, recipe.rounds, objective)
    measured = _measure_choice(recipe, camera_images, objective, choice, rows_sk) | training_cost(
        recipe, camera_images, place
    )
    trained, random = (VisionAgent(recipe.agent, one, camera_images.seen) for one in (objective, untrained))
    sides = {"": rows_sk[:, recipe.views.index(str(recipe.agent.view))], CHOSEN: choice.rows(rows_sk)}
    verdicts = {}
    for name, rows in sides.items():
        verdicts[name] = _store(trained, random, rows, place / name) + as_verdicts(measured, "Of one agent.")
    return record | {
        "verdicts": verdicts[""],
        CHOSEN: {"verdicts": verdicts[CHOSEN]},
        "views": list(recipe.views),
        "cameras": [_shares(made).tolist() for made in choices_of(place)],
    }


def _store(agent: VisionAgent, untrained: VisionAgent, rows: np.ndarray, place: Path) -> list[Plain]:
    """Write the latents of some images, trained and untrained, and report whether they collapsed."""
    held = np.isin(rows, agent.seen.held)
    arrays = latents_of(agent, rows) | {"untrained": untrained.latents(rows), "held": held}
    write_arrays(place / LATENTS, arrays)
    return [collapse_verdict(arrays["h"][held], groups_of(agent.seen, rows[held])).to_json()]


def _measure_choice(
    recipe: CameraChoiceRecipe,
    camera_images: CameraImages,
    objective: Objective,
    choice: CameraChoice,
    rows_sk: np.ndarray,
) -> dict[str, Estimate]:
    """How evenly cameras were chosen, and whether chosen cameras are also harder with other masks."""
    seed = recipe.steps_of_round(recipe.rounds)[1]
    held = np.isin(rows_sk[:, 0], camera_images.seen.held)
    loss_sk = camera_losses(objective, camera_images.seen.images, rows_sk[held], seed, recipe.agent.shuffle)
    found = {
        "advantage": advantage(loss_sk, choice.cameras[held]),
        "evenness": evenness(_shares(choice)),
        "openness": float(np.mean([evenness(row) for row in choice.chances])),
    }
    return point_estimates(found, len(rows_sk))


def training_cost(recipe: CameraChoiceRecipe, camera_images: CameraImages, place: Path) -> dict[str, Estimate]:
    """Operations of the training and of the forward passes that choose cameras, and the final loss."""
    batches = build_crops(recipe.agent, camera_images.seen)
    objective = build_vision(recipe.agent, camera_images.seen)
    looked = (recipe.rounds - 1) * camera_images.learnt.size if recipe.policy == "curious" else 0
    flops = step_flops(objective, batches, recipe.training.accumulate) * recipe.training.steps
    if looked:
        flops += looked * _forward_flops(objective, camera_images)
    found = {"flops": float(flops), "loss": last_metrics(place)["loss"], "looked": float(looked)}
    return point_estimates(found, 1)


def _forward_flops(objective: Any, camera_images: CameraImages) -> float:
    """Mean operations of a forward pass for one image."""
    rows_sk = camera_images.learnt[:COUNTED]
    with counted_flops() as counter:
        camera_losses(objective.eval(), camera_images.seen.images, rows_sk, 0)
    return counter.get_total_flops() / rows_sk.size


def _shares(choice: CameraChoice) -> np.ndarray:
    """Share of the states for which each camera was chosen."""
    return np.bincount(choice.cameras, minlength=choice.chances.shape[1]) / len(choice.cameras)


def advantage(loss_sk: np.ndarray, cameras: np.ndarray) -> float:
    """Mean excess of the loss from the chosen cameras over all cameras, in standard deviations between cameras.

    >>> advantage(np.array([[0.0, 2.0], [1.0, 3.0]]), np.array([1, 1]))
    1.0
    """
    excess = loss_sk - loss_sk.mean(1, keepdims=True)
    sigma = float(np.sqrt(np.square(excess).mean()))
    if sigma == 0:
        return 0.0
    return float(excess[np.arange(len(excess)), cameras].mean() / sigma)


def evenness(shares: np.ndarray) -> float:
    """Normalised entropy: 1 if all shares are equal, 0 if one of them is 1.

    >>> evenness(np.array([0.5, 0.5])), evenness(np.array([1.0, 0.0]))
    (1.0, 0.0)
    """
    positive = shares[shares > 0]
    entropy = -(positive * np.log(positive)).sum()
    return float(max(0.0, entropy / np.log(len(shares))))
