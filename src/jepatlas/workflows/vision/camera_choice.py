"""Active viewpoint selection: of each state an agent sees one camera's image, chosen by its own prediction loss.

    p(camera k | state s) = softmax_k (ℓ_sk − ℓ̄_s) / (σ τ),     σ² = mean of (ℓ_sk − ℓ̄_s)² over states and cameras

ℓ_sk is the agent's prediction loss on the image of state s from camera k. All cameras of a state use the same masks, so
that a difficult mask is not mistaken for a difficult view. Dividing by σ gives τ the same meaning throughout training.

Training alternates between choosing cameras and learning from the chosen images, in rounds. A round is a segment of one
run: learning rate, momentum and optimiser state continue. Choices are written to `looks/round-N.npz` before they are
used, so an interrupted run resumes with the same choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.distributed import process_group, rank
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.images import Shuffle
from jepatlas.recipes import (
    CameraChoiceRecipe,
    ViewImages,
    build_crops,
    build_vision,
    load_recipe,
    read_images,
    recipe_id,
    write_recipe,
)
from jepatlas.training import Outcome, latest_checkpoint, load_checkpoint, load_weights, train, wait_for_all

__all__ = [
    "CameraChoice",
    "CameraImages",
    "camera_losses",
    "camera_probabilities",
    "choices_of",
    "choose_cameras",
    "load_with_cameras",
    "read_camera_images",
    "sample_cameras",
    "train_with_cameras",
]

BATCH = 64


@dataclass(frozen=True)
class CameraImages:
    """States that all cameras of an agent show, and the image of each state from each camera."""

    seen: ViewImages
    rows: np.ndarray  # (states, cameras): rows of `seen`
    held: np.ndarray  # (states,): whether the state is held out

    @property
    def learnt(self) -> np.ndarray:
        """Rows of the training states: (states, cameras)."""
        return self.rows[~self.held]


@dataclass(frozen=True)
class CameraChoice:
    """The camera chosen for each state, and the probabilities it was sampled from."""

    cameras: np.ndarray  # (states,)
    chances: np.ndarray  # (states, cameras)

    def rows(self, rows_sk: np.ndarray) -> np.ndarray:
        """The rows of the chosen images."""
        return rows_sk[np.arange(len(rows_sk)), self.cameras]


def read_camera_images(recipe: CameraChoiceRecipe) -> CameraImages:
    """Images of all cameras, in the order of the table; states that a camera does not show are left out."""
    seen = read_images(recipe.agent, views=recipe.views)
    states, number = np.unique(seen.table.column("state"), return_inverse=True)
    rows = np.full((len(states), len(recipe.views)), -1)
    for camera, view in enumerate(recipe.views):
        mine = seen.table.rows_of_view(view)
        rows[number[mine], camera] = mine
    rows = rows[(rows >= 0).all(1)]
    if not len(rows):
        raise InputError(f"No state has all of the views {', '.join(recipe.views)}.")
    rows = rows[np.argsort(rows.min(1))]
    return CameraImages(seen, rows, np.isin(rows[:, 0], seen.held))


def camera_losses(
    objective: Any, images: np.ndarray, rows_sk: np.ndarray, step: int, shuffle: Shuffle | None = None
) -> np.ndarray:
    """The agent's prediction loss on every image: (states, cameras). `step` determines the masks."""
    if not hasattr(objective, "loss_per_image"):
        raise InputError(
            f"{type(objective).__name__} has no loss per image, which the curious policy needs. Use the objective "
            "ijepa, or the policy random."
        )
    loss = np.empty(rows_sk.shape)
    device = next(objective.parameters()).device
    for number, first in enumerate(range(0, len(rows_sk), BATCH)):
        for camera, rows in enumerate(rows_sk[first : first + BATCH].T):
            pixels = np.asarray(images[rows])
            if shuffle is not None:
                pixels = shuffle(pixels, rows)
            x = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).to(device)
            loss[first : first + BATCH, camera] = objective.loss_per_image(Crops(x, ()), step + number).cpu().numpy()
    return loss


def camera_probabilities(loss_sk: np.ndarray, temperature: float) -> np.ndarray:
    """Probability of each camera for each state.

    >>> camera_probabilities(np.array([[1.0, 1.0], [0.0, 2.0]]), 1.0).round(2).tolist()
    [[0.5, 0.5], [0.06, 0.94]]
    """
    deviation = loss_sk - loss_sk.mean(1, keepdims=True)
    sigma = np.sqrt(np.square(deviation).mean())
    weights = np.exp((deviation - deviation.max(1, keepdims=True)) / (sigma * temperature if sigma > 0 else 1.0))
    return weights / weights.sum(1, keepdims=True)


def sample_cameras(probabilities_sk: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One camera per state: (states,)."""
    cumulative = np.cumsum(probabilities_sk, axis=1)[:, :-1]
    return (rng.random((len(probabilities_sk), 1)) >= cumulative).sum(1)


def choose_cameras(
    recipe: CameraChoiceRecipe, camera_images: CameraImages, rows_sk: np.ndarray, number: int, objective: Any = None
) -> CameraChoice:
    """The choice of round `number`; uniform for the random policy and, without an objective, before the first round."""
    if recipe.policy == "random" or objective is None:
        probabilities = np.full(rows_sk.shape, 1 / rows_sk.shape[1])
    else:
        first, _ = recipe.steps_of_round(number)
        loss = camera_losses(objective.eval(), camera_images.seen.images, rows_sk, first, recipe.agent.shuffle)
        probabilities = camera_probabilities(loss, recipe.temperature)
    cameras = sample_cameras(probabilities, numpy_generator(recipe.seed, "viewpoints", number))
    return CameraChoice(cameras, probabilities)


def train_with_cameras(recipe: CameraChoiceRecipe, folder: Path, console: Console | None = None) -> Outcome:
    """Train in `folder`, or resume the run in it."""
    recipe.training.check_machine()
    with process_group(recipe.training.device):
        camera_images = read_camera_images(recipe)
        _open_run(recipe, folder)
        outcome = Outcome("finished", recipe.training.steps)
        for number in range(recipe.rounds):
            if _last_step(folder) >= recipe.steps_of_round(number)[1]:
                continue
            outcome = _train_round(recipe, camera_images, folder, number, console)
            if outcome.status != "finished":
                break
        return outcome


def load_with_cameras(recipe: CameraChoiceRecipe, camera_images: CameraImages, folder: Path) -> Any:
    """The objective at the newest checkpoint (initial weights if there is none), in evaluation mode."""
    objective = build_vision(recipe.agent, camera_images.seen)
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is not None:
        load_weights(objective, load_checkpoint(newest, recipe_id(recipe)).tensors)
    return objective.to(recipe.training.device_here()).eval()


def choices_of(folder: Path) -> list[CameraChoice]:
    """The choices of all rounds so far, for the training states."""
    found = [read_arrays(path) for path in sorted((folder / "looks").glob("round-*.npz"))]
    return [CameraChoice(arrays["cameras"], arrays["chances"]) for arrays in found]


def _open_run(recipe: CameraChoiceRecipe, folder: Path) -> None:
    exists = (folder / "recipe.yaml").exists()
    wait_for_all()  # all processes check the folder before one writes to it
    if exists and recipe_id(load_recipe(folder, CameraChoiceRecipe)) != recipe_id(recipe):
        raise InputError(f"{folder} holds a run of another recipe. Choose another folder.")
    if not exists and rank() == 0:
        write_recipe(recipe, folder)


def _train_round(
    recipe: CameraChoiceRecipe, camera_images: CameraImages, folder: Path, number: int, console: Console | None
) -> Outcome:
    _, until = recipe.steps_of_round(number)
    choice = _choice_of_round(recipe, camera_images, folder, number)
    seen = replace(camera_images.seen, learnt=choice.rows(camera_images.learnt))
    objective = build_vision(recipe.agent, camera_images.seen)
    batches = build_crops(recipe.agent, seen)
    return train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe), console=console, until=until)


def _choice_of_round(
    recipe: CameraChoiceRecipe, camera_images: CameraImages, folder: Path, number: int
) -> CameraChoice:
    """The choice of one process for all: masks, and with them the losses, differ between processes."""
    place = folder / "looks" / f"round-{number:04d}.npz"
    step = _last_step(folder)
    if rank() == 0 and not place.exists():
        if step != recipe.steps_of_round(number)[0]:
            raise InputError(f"{place} is missing, so the choices of this round are unknown. Start a new run.")
        objective = load_with_cameras(recipe, camera_images, folder) if step else None
        made = choose_cameras(recipe, camera_images, camera_images.learnt, number, objective)
        write_arrays(place, {"cameras": made.cameras, "chances": made.chances})
    wait_for_all()
    return choices_of(folder)[number]


def _last_step(folder: Path) -> int:
    newest = latest_checkpoint(folder / "checkpoints")
    return 0 if newest is None else int(newest.name.removeprefix("step-"))
