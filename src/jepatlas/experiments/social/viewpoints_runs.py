"""What one trial of choosing viewpoints does: train an agent in rounds, and see all states in two ways.

    as with one camera   from the camera that the agent would have if it had but one
    as it looks          each state from the camera that the agent chooses for it after training, by the rule it
                         learned by

Whether a choice says something of the view, and not of the masks that its losses were measured with, is told by a
second look with other masks: `advantage` is the loss from the chosen cameras above the mean of all, in standard
deviations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import write_arrays
from jepatlas.core.config import from_plain
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.social.runs import LATENTS, kept_rows
from jepatlas.recipes import LookingRecipe, build_crops, build_vision
from jepatlas.training import last_metrics
from jepatlas.training.flops import counted_flops, step_flops
from jepatlas.workflows.vision import (
    Choice,
    Seeing,
    Sights,
    choices_of,
    collapse_verdict,
    decide,
    groups_of,
    latents_of,
    load_looking,
    look,
    survey,
    train_looking,
)

__all__ = ["CHOSEN", "advantage", "evenness", "run"]

LOOKED = 64  # states whose looks are counted
CHOSEN = "chosen"  # folder of latents, and part of the record, of states seen as the agent chooses


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Train (or go on), choose a camera for every state, encode from it and from the one, and tell what was chosen."""
    recipe, place = from_plain(LookingRecipe, settings["recipe"]), Path(folder)
    outcome = train_looking(recipe, place)
    record = {"status": outcome.status, "step": outcome.step, "verdicts": []}
    if outcome.status != "finished":
        return record | {"verdicts": [outcome.verdict.to_json()] if outcome.verdict else []}
    sights = survey(recipe)
    objective = load_looking(recipe, sights, place)
    untrained = build_vision(recipe.agent, sights.seen).to(recipe.training.device_here()).eval()
    states = sights.seen.table.column("state")[sights.rows[:, 0]]
    rows_sk = sights.rows[kept_rows(states, settings["most"])]
    choice = decide(recipe, sights, rows_sk, recipe.rounds, objective)
    found = _chosen(recipe, sights, objective, choice, rows_sk) | _cost(recipe, sights, place)
    agents = [Seeing(recipe.agent, one, sights.seen) for one in (objective, untrained)]
    sides = {"": rows_sk[:, recipe.views.index(str(recipe.agent.view))], CHOSEN: choice.rows(rows_sk)}
    verdicts = {
        name: _kept(agents[0], agents[1], rows, place / name) + as_verdicts(found, "Of one agent.")
        for name, rows in sides.items()
    }
    return record | {
        "verdicts": verdicts[""],
        CHOSEN: {"verdicts": verdicts[CHOSEN]},
        "views": list(recipe.views),
        "cameras": [_shares(made).tolist() for made in choices_of(place)],
    }


def _kept(agent: Seeing, untrained: Seeing, rows: np.ndarray, place: Path) -> list[dict[str, Any]]:
    """Write latents of some images and of the network before its first step; and whether they vary."""
    held = np.isin(rows, agent.seen.held)
    arrays = latents_of(agent, rows) | {"untrained": untrained.latents(rows), "held": held}
    write_arrays(place / LATENTS, arrays)
    return [collapse_verdict(arrays["h"][held], groups_of(agent.seen, rows[held])).to_json()]


def _chosen(
    recipe: LookingRecipe, sights: Sights, objective: Any, choice: Choice, rows_sk: np.ndarray
) -> dict[str, Estimate]:
    """How even cameras were chosen, and whether other masks find those chosen for held-out states as hard."""
    again, held = recipe.stretch(recipe.rounds)[1], np.isin(rows_sk[:, 0], sights.seen.held)
    loss = look(objective, sights.seen.images, rows_sk[held], again, recipe.agent.shuffle)
    found = {
        "advantage": advantage(loss, choice.cameras[held]),
        "evenness": evenness(_shares(choice)),
        "openness": float(np.mean([evenness(row) for row in choice.chances])),
    }
    return {name: Estimate(value, value, value, len(rows_sk)) for name, value in found.items()}


def _cost(recipe: LookingRecipe, sights: Sights, place: Path) -> dict[str, Estimate]:
    batches, objective = build_crops(recipe.agent, sights.seen), build_vision(recipe.agent, sights.seen)
    looked = (recipe.rounds - 1) * sights.learnt.size if recipe.policy == "curious" else 0
    flops = step_flops(objective, batches, recipe.training.accumulate) * recipe.training.steps
    flops += looked * _look_flops(objective, sights) if looked else 0
    loss = last_metrics(place)["loss"]
    found = {"flops": float(flops), "loss": loss, "looked": float(looked)}
    return {name: Estimate(value, value, value, 1) for name, value in found.items()}


def _look_flops(objective: Any, sights: Sights) -> float:
    """Of one image that is looked at, in the mean over some: a forward pass alone."""
    rows_sk = sights.learnt[:LOOKED]
    with counted_flops() as counter:
        look(objective.eval(), sights.seen.images, rows_sk, 0)
    return counter.get_total_flops() / rows_sk.size


def _shares(choice: Choice) -> np.ndarray:
    """How often each camera was chosen."""
    return np.bincount(choice.cameras, minlength=choice.chances.shape[1]) / len(choice.cameras)


def advantage(loss_sk: np.ndarray, cameras: np.ndarray) -> float:
    """How much higher the loss is from the chosen cameras than from all, in standard deviations between cameras.

    >>> advantage(np.array([[0.0, 2.0], [1.0, 3.0]]), np.array([1, 1]))
    1.0
    """
    apart = loss_sk - loss_sk.mean(1, keepdims=True)
    sigma = float(np.sqrt(np.square(apart).mean()))
    return float(apart[np.arange(len(apart)), cameras].mean() / sigma) if sigma > 0 else 0.0


def evenness(shares: np.ndarray) -> float:
    """Entropy of shares, 1 where all are alike and 0 where one has all.

    >>> evenness(np.array([0.5, 0.5])), evenness(np.array([1.0, 0.0]))
    (1.0, 0.0)
    """
    some = shares[shares > 0]
    return float(max(0.0, -(some * np.log(some)).sum() / np.log(len(shares))))
