"""Where an agent looks: of every state it sees one of its cameras' images, and its own loss says which.

    p(camera k | state s) = softmax_k (ℓ_sk − ℓ̄_s) / (σ τ),     σ² = mean of (ℓ_sk − ℓ̄_s)² over states and cameras

ℓ_sk is the agent's prediction loss on the image of state s from camera k, with the same masks for all cameras of a
state, so that a hard mask is not taken for a hard view. In units of σ, τ means the same early and late in training.
Nothing of another agent enters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import Shuffle
from jepatlas.recipes import LookingRecipe, ViewImages, read_images

__all__ = ["Choice", "Sights", "chances", "choose", "decide", "look", "survey"]

BATCH = 64


@dataclass(frozen=True)
class Sights:
    """All states that every camera of an agent shows, and the image of each from each."""

    seen: ViewImages
    rows: np.ndarray  # (states, cameras): rows of `seen`
    held: np.ndarray  # (states,): whether it is judged by

    @property
    def learnt(self) -> np.ndarray:
        """The rows of the states that are learned from."""
        return self.rows[~self.held]


@dataclass(frozen=True)
class Choice:
    """What an agent decided for some states: a camera each, and what it was drawn by."""

    cameras: np.ndarray  # (states,)
    chances: np.ndarray  # (states, cameras)

    def rows(self, rows_sk: np.ndarray) -> np.ndarray:
        """The images that were chosen."""
        return rows_sk[np.arange(len(rows_sk)), self.cameras]


def survey(recipe: LookingRecipe) -> Sights:
    """The images of all cameras, states in the order of the table; those that a camera does not show are left out."""
    seen = read_images(recipe.agent, views=recipe.views)
    states, number = np.unique(seen.table.column("state"), return_inverse=True)
    rows = np.full((len(states), len(recipe.views)), -1)
    for camera, view in enumerate(recipe.views):
        mine = seen.table.rows_of_view(view)
        rows[number[mine], camera] = mine
    rows = rows[(rows >= 0).all(1)]
    if not len(rows):
        raise InputError(f"No state is shown by all of the views {', '.join(recipe.views)}.")
    rows = rows[np.argsort(rows.min(1))]
    return Sights(seen, rows, np.isin(rows[:, 0], seen.held))


def look(
    objective: Any, images: np.ndarray, rows_sk: np.ndarray, step: int, shuffle: Shuffle | None = None
) -> np.ndarray:
    """The agent's own loss on every image: (states, cameras). `step` says which masks are drawn."""
    if not hasattr(objective, "loss_per_image"):
        raise InputError(
            f"{type(objective).__name__} does not tell the loss of single images, which a curious agent "
            "chooses by. Take the objective ijepa, or the policy random."
        )
    loss, device = np.empty(rows_sk.shape), next(objective.parameters()).device
    for number, first in enumerate(range(0, len(rows_sk), BATCH)):
        for camera, rows in enumerate(rows_sk[first : first + BATCH].T):
            some = np.asarray(images[rows])
            some = some if shuffle is None else shuffle(some, rows)
            x = torch.from_numpy(np.ascontiguousarray(some)).permute(0, 3, 1, 2).to(device)
            loss[first : first + BATCH, camera] = objective.loss_per_image(Crops(x, ()), step + number).cpu().numpy()
    return loss


def chances(loss_sk: np.ndarray, temperature: float) -> np.ndarray:
    """How likely each camera is to be chosen for each state.

    >>> chances(np.array([[1.0, 1.0], [0.0, 2.0]]), 1.0).round(2).tolist()
    [[0.5, 0.5], [0.06, 0.94]]
    """
    apart = loss_sk - loss_sk.mean(1, keepdims=True)
    sigma = np.sqrt(np.square(apart).mean())
    weights = np.exp((apart - apart.max(1, keepdims=True)) / (sigma * temperature if sigma > 0 else 1.0))
    return weights / weights.sum(1, keepdims=True)


def choose(chances_sk: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One camera for each state, drawn by its chances."""
    reached = np.cumsum(chances_sk, axis=1)[:, :-1]
    return (rng.random((len(chances_sk), 1)) >= reached).sum(1)


def decide(recipe: LookingRecipe, sights: Sights, rows_sk: np.ndarray, number: int, objective: Any = None) -> Choice:
    """What the agent chooses in a round. At random without an objective: before the first, nothing was learned."""
    if recipe.policy == "random" or objective is None:
        found = np.full(rows_sk.shape, 1 / rows_sk.shape[1])
    else:
        first, _ = recipe.stretch(number)
        loss = look(objective.eval(), sights.seen.images, rows_sk, first, recipe.agent.shuffle)
        found = chances(loss, recipe.temperature)
    return Choice(choose(found, numpy_generator(recipe.seed, "viewpoints", number)), found)
