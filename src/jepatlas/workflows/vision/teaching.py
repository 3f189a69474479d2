"""A student's run, from a teacher that was trained before: its latents go along, its network stays where it is."""

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
from jepatlas.recipes import TaughtRecipe, TeacherFile, VisionRecipe, load_recipe, read_images
from jepatlas.training import Outcome, wait_for_all
from jepatlas.workflows.runs import start_run
from jepatlas.workflows.vision.agents import load_agent
from jepatlas.workflows.vision.latents import latents_of

__all__ = ["refuse_told_tests", "start_taught", "teacher_arrays"]

TEACHER = "teacher.npz"


def teacher_arrays(run: Path) -> dict[str, np.ndarray]:
    """What a trained agent tells of the states that it learned from: latents, ids, and labels where there are any."""
    told = latents_of(load_agent(run), "learnt")
    return {name: told[name] for name in ("h", "ids", "labels") if name in told}


def refuse_told_tests(teacher: Path, student: VisionRecipe) -> None:
    """What the student is judged by must not reach it through a teacher that has learned from it."""
    learnt, seen = read_images(load_recipe(teacher, VisionRecipe)), read_images(student)
    known = set(learnt.table.column("state")[learnt.learnt].tolist())
    if found := known & set(seen.table.column("state")[seen.held].tolist()):
        raise InputError(
            f"The teacher has learned from {len(found)} states that the student would be judged by, such as "
            f"'{min(found)}'. Give the student the teacher's images, --held and --split."
        )


def start_taught(
    recipe: TaughtRecipe, told: Mapping[str, np.ndarray], folder: Path, console: Console | None = None
) -> Outcome:
    """Train a student in `folder`, which keeps what the teacher told; a recipe that cannot be built leaves nothing."""
    with process_group(recipe.training.device):
        if folder.exists() and any(folder.iterdir()):
            raise InputError(
                f"{folder} is not empty. Go on with the run in it by --resume {quote(str(folder))}, or "
                "choose another --out."
            )
        wait_for_all()  # to look, or one would find what another has just written
        if rank() == 0:
            write_arrays(folder / TEACHER, told)
        wait_for_all()
        try:
            return start_run(replace(recipe, teacher=TeacherFile(str(folder / TEACHER))).sealed(), folder, console)
        except InputError:
            if rank() == 0 and not (folder / "recipe.yaml").exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise
