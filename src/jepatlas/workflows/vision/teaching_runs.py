"""Runs in which agents are taught: starting a student from a trained teacher, and extracting the agents."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote

import numpy as np
from rich.console import Console

from jepatlas.core.arrays import write_arrays
from jepatlas.core.distributed import process_group, rank
from jepatlas.core.errors import InputError
from jepatlas.recipes import (
    MutualRecipe,
    TaughtRecipe,
    TeacherFile,
    VisionRecipe,
    any_recipe,
    load_recipe,
    read_images,
    recipe_id,
    write_recipe,
)
from jepatlas.training import Checkpoint, Outcome, latest_checkpoint, load_checkpoint, save_checkpoint, wait_for_all
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision.vision_agent import latents_of, load_agent

__all__ = ["check_no_test_leak", "extract_agents", "start_taught", "teacher_arrays"]

TEACHER_FILE = "teacher.npz"


def teacher_arrays(run: Path) -> dict[str, np.ndarray]:
    """Latents, ids and (if available) labels of the states that a trained agent learned from."""
    arrays = latents_of(load_agent(run), "learnt")
    return {name: arrays[name] for name in ("h", "ids", "labels") if name in arrays}


def check_no_test_leak(teacher: Path, student: VisionRecipe) -> None:
    """Raise InputError if the teacher was trained on held-out states of the student."""
    teacher_images = read_images(load_recipe(teacher, VisionRecipe))
    student_images = read_images(student)
    learned = set(teacher_images.table.column("state")[teacher_images.learnt].tolist())
    leaked = learned & set(student_images.table.column("state")[student_images.held].tolist())
    if leaked:
        raise InputError(
            f"The teacher was trained on {len(leaked)} held-out states of the student, such as '{min(leaked)}'. "
            "Use the teacher's images, --held and --split for the student."
        )


def start_taught(
    recipe: TaughtRecipe, targets: Mapping[str, np.ndarray], folder: Path, console: Console | None = None
) -> Outcome:
    """Train a student in `folder`, which keeps the teacher's outputs. A recipe that cannot be built leaves no files."""
    with process_group(recipe.training.device):
        if folder.exists() and any(folder.iterdir()):
            raise InputError(
                f"{folder} is not empty. Resume the run in it with --resume {quote(str(folder))}, or choose another "
                "--out."
            )
        wait_for_all()  # all processes check the folder before one writes to it
        if rank() == 0:
            write_arrays(folder / TEACHER_FILE, targets)
        wait_for_all()
        try:
            return start_run(replace(recipe, teacher=TeacherFile(str(folder / TEACHER_FILE))).sealed(), folder, console)
        except InputError:
            if rank() == 0 and not (folder / "recipe.yaml").exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise


def extract_agents(folder: Path) -> dict[str, Path]:
    """Write each agent of a taught run as a run of its own (recipe and weights) in a subfolder."""
    recipe = any_recipe(folder)
    if not isinstance(recipe, TaughtRecipe | MutualRecipe):
        raise InputError(f"{folder} is not a run in which an agent was taught.")
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is None:
        raise InputError(f"{folder} has no checkpoint yet.")
    checkpoint = load_checkpoint(newest, recipe_id(recipe))
    places = {}
    for name, (agent, prefix) in recipe.agents.items():
        tensors = {}
        for key, value in checkpoint.tensors.items():
            if key.startswith((f"model.{prefix}.", f"average.{prefix}.")):
                tensors[key.replace(f".{prefix}.", ".", 1)] = value
        places[name] = folder / name
        write_recipe(agent, places[name])
        save_checkpoint(places[name] / "checkpoints", Checkpoint(checkpoint.step, tensors), recipe_id(agent), keep=1)
    return places
