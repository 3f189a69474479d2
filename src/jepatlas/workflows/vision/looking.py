"""An agent that chooses where to look, trained in rounds: look, choose, learn, and again.

A round is a stretch of one run: learning rate, momentum and optimiser go on as if there were no rounds. What was
chosen is written to `looks/round-N.npz` before anything is learned from it, so a run that was stopped, within a round
or between two, goes on with what it had chosen and takes the steps that it would have taken.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.distributed import process_group, rank
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_text
from jepatlas.recipes import LookingRecipe, build_crops, build_vision, load_recipe, recipe_id, recipe_text
from jepatlas.training import Outcome, latest_checkpoint, load_checkpoint, load_weights, train, wait_for_all
from jepatlas.workflows.vision.viewpoints import Choice, Sights, decide, survey

__all__ = ["choices_of", "load_looking", "train_looking"]


def train_looking(recipe: LookingRecipe, folder: Path, console: Console | None = None) -> Outcome:
    """Train in `folder`, or go on with the run in it."""
    recipe.training.check_machine()
    with process_group(recipe.training.device):
        sights = survey(recipe)
        _begin(recipe, folder)
        outcome = Outcome("finished", recipe.training.steps)
        for number in range(recipe.rounds):
            if _step(folder) >= recipe.stretch(number)[1]:
                continue
            outcome = _round(recipe, sights, folder, number, console)
            if outcome.status != "finished":
                break
        return outcome


def load_looking(recipe: LookingRecipe, sights: Sights, folder: Path) -> Any:
    """The objective as it is after the newest checkpoint, in evaluation mode; fresh where there is none."""
    objective = build_vision(recipe.agent, sights.seen)
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is not None:
        load_weights(objective, load_checkpoint(newest, recipe_id(recipe)).tensors)
    return objective.to(recipe.training.device_here()).eval()


def choices_of(folder: Path) -> list[Choice]:
    """What was chosen, round by round, of the states that are learned from."""
    found = [read_arrays(path) for path in sorted((folder / "looks").glob("round-*.npz"))]
    return [Choice(arrays["cameras"], arrays["chances"]) for arrays in found]


def _begin(recipe: LookingRecipe, folder: Path) -> None:
    begun = (folder / "recipe.yaml").exists()
    wait_for_all()  # to look, or one would find what another has just written
    if begun and recipe_id(load_recipe(folder, LookingRecipe)) != recipe_id(recipe):
        raise InputError(f"{folder} holds a run of another recipe. Choose another folder.")
    if not begun and rank() == 0:
        write_text(folder / "recipe.yaml", recipe_text(recipe))


def _round(recipe: LookingRecipe, sights: Sights, folder: Path, number: int, console: Console | None) -> Outcome:
    _, until = recipe.stretch(number)
    chosen = _chosen(recipe, sights, folder, number)
    seen = replace(sights.seen, learnt=chosen.rows(sights.learnt))
    objective, batches = build_vision(recipe.agent, sights.seen), build_crops(recipe.agent, seen)
    return train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe), console=console, until=until)


def _chosen(recipe: LookingRecipe, sights: Sights, folder: Path, number: int) -> Choice:
    """One process chooses for all: masks, which the losses depend on, differ between processes."""
    place, begun = folder / "looks" / f"round-{number:04d}.npz", _step(folder)
    if rank() == 0 and not place.exists():
        if begun != recipe.stretch(number)[0]:
            raise InputError(f"{place} is missing, so what was chosen for this round is not known. Train anew.")
        objective = load_looking(recipe, sights, folder) if begun else None
        made = decide(recipe, sights, sights.learnt, number, objective)
        write_arrays(place, {"cameras": made.cameras, "chances": made.chances})
    wait_for_all()
    return choices_of(folder)[number]


def _step(folder: Path) -> int:
    newest = latest_checkpoint(folder / "checkpoints")
    return 0 if newest is None else int(newest.name.removeprefix("step-"))
