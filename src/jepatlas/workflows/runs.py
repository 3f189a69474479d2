"""Runs: train a recipe in a folder, resume it, load its weights, and certify it.

recipe.yaml    metrics.jsonl    checkpoints/step-N/    records/*.json    report.html
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import torch
from rich.console import Console
from torch import nn

from jepatlas.core.contracts import Batches, Objective
from jepatlas.core.distributed import process_group, rank
from jepatlas.core.errors import InputError
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import PairObjective
from jepatlas.recipes import (
    AnyRecipe,
    EnergyRecipe,
    Recipe,
    any_recipe,
    build_objective,
    load_recipe,
    recipe_from_plain,
    recipe_id,
    write_recipe,
)
from jepatlas.training import (
    Outcome,
    latest_checkpoint,
    load_checkpoint,
    load_weights,
    lock_for_all,
    train,
    wait_for_all,
)
from jepatlas.workflows.certify import SAMPLES, CertificateRecord, certificate, check_samples

__all__ = [
    "certify_run",
    "load_objective",
    "load_weights_into",
    "resume_run",
    "run_job",
    "start_run",
    "train_in_folder",
    "train_job",
    "trained",
]

T = TypeVar("T", bound=nn.Module)


def start_run(recipe: AnyRecipe, folder: Path | str, console: Console | None = None) -> Outcome:
    """Train a new run in `folder`, which must not contain one already."""
    folder = Path(folder)
    _check_no_run(folder)
    if isinstance(recipe, EnergyRecipe) and recipe.computed:
        if recipe.agent is not None:
            raise InputError(
                "Least action is computed on given latents, so it trains no agent. Train the agent first, and give a "
                "file with its latents."
            )
        write_recipe(recipe, folder)
        return _without_training(recipe, folder)
    recipe.training.check_machine()
    with process_group(recipe.training.device):  # nothing here may keep the objective alive longer than the group
        # Build before writing anything, so that an invalid recipe leaves no files.
        return train_in_folder(recipe, *recipe.build(), folder, console)


def _check_no_run(folder: Path) -> None:
    if (folder / "recipe.yaml").exists() or (folder / "checkpoints").exists():
        raise InputError(
            f"{folder} already contains a run. Resume it with --resume {quote(str(folder))}, or choose another --out."
        )


def train_in_folder(
    recipe: AnyRecipe,
    objective: Objective,
    batches: Batches,
    folder: Path,
    console: Console | None = None,
    *,
    resume: bool = False,
) -> Outcome:
    """Write the recipe and train what was built from it; with `resume`, continue from the latest checkpoint, if any."""
    with lock_for_all(folder):
        if not resume:
            _check_no_run(folder)  # another process may have begun one meanwhile
        wait_for_all()  # all processes have checked the folder before one writes to it
        if rank() == 0 and not (folder / "recipe.yaml").exists():
            write_recipe(recipe, folder)
        return _train(recipe, objective, batches, folder, console)


def resume_run(folder: Path | str, console: Console | None = None) -> Outcome:
    """Resume from the latest checkpoint, or start over if there is none."""
    folder = Path(folder)
    recipe = any_recipe(folder)
    if isinstance(recipe, EnergyRecipe) and recipe.computed:
        return _without_training(recipe, folder)
    with process_group(recipe.training.device), lock_for_all(folder):
        return _train(recipe, *recipe.build(), folder, console)


def _without_training(recipe: EnergyRecipe, folder: Path) -> Outcome:
    Record("Outcome", "The energy is computed, not trained.", provenance(recipe.seed)).save(folder, "outcome")
    return Outcome("finished", 0)


def _train(recipe: AnyRecipe, objective: Objective, batches: Batches, folder: Path, console: Console | None) -> Outcome:
    outcome = train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe), console=console)
    if rank() == 0:
        verdicts = (outcome.verdict,) if outcome.verdict else ()
        status = "was interrupted" if outcome.status == "interrupted" else outcome.status
        summary = f"The run {status} after {outcome.step} of {recipe.training.steps} steps."
        Record("Outcome", summary, provenance(recipe.seed), verdicts).save(folder, "outcome")
    return outcome


def load_objective(folder: Path | str) -> tuple[Recipe, PairObjective]:
    """The recipe and trained objective of a run, with averaged weights if the run kept them."""
    folder = Path(folder)
    recipe = load_recipe(folder)
    return recipe, trained(build_objective(recipe), recipe, folder)


def load_weights_into(module: T, folder: Path | str) -> T:
    """Load the weights of a run's encoder into a module of the same structure; returns it in evaluation mode."""
    folder = Path(folder)
    tensors = load_checkpoint(_latest_checkpoint(folder), recipe_id(any_recipe(folder))).tensors
    parts = [(name.partition(".encoder."), value) for name, value in tensors.items()]
    load_weights(module, {f"{kind}.{name}": value for (kind, found, name), value in parts if found})
    return module.eval()


def trained(objective: T, recipe: AnyRecipe, folder: Path | str) -> T:
    """Load the latest checkpoint of a run into an objective; returns it in evaluation mode."""
    folder = Path(folder)
    load_weights(objective, load_checkpoint(_latest_checkpoint(folder), recipe_id(recipe)).tensors)
    return objective.eval()


def _latest_checkpoint(folder: Path) -> Path:
    latest = latest_checkpoint(folder / "checkpoints")
    if latest is None:
        raise InputError(
            f"{folder} has no checkpoint: the run was stopped, or failed, before the first one (see its "
            f"records/outcome.json). Resume it with 'jepatlas train --resume {quote(str(folder))}', or train again "
            "with other settings."
        )
    return latest


def certify_run(
    folder: Path,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    out: Path | None = None,
    audited: bool = False,
    quick: bool = False,
) -> CertificateRecord:
    """Certify a run on new samples of its world, and save the record as `records/certificate.json`.

    `audited` also computes the spectrum of the observations and audits the latents, which takes longer than the rest.
    """
    check_samples(samples)
    recipe, objective = load_objective(folder)
    pairs = recipe.pairs.draw(recipe.world, samples, torch_generator(seed, "certify"))
    with torch.no_grad():
        h = objective.encode(pairs.x)
        h_next = objective.encode(pairs.x_next)
    tensors = {"h": h, "h_next": h_next, "z": pairs.z, "x": pairs.x, "x_next": pairs.x_next}
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    rho, note = _single_rate(recipe, h.shape[1])
    step = int(_latest_checkpoint(folder).name.removeprefix("step-"))
    about = {"trained with seed": recipe.seed, "step": step}
    title = f"Certificate of {folder.name}"
    record = certificate(title, arrays, rho=rho, seed=seed, audited=audited, quick=quick, note=note, about=about)
    record.save(out or folder, "certificate")
    return record


def _single_rate(recipe: Recipe, latents: int) -> tuple[float | None, str]:
    """The pairs' correlation if the bound applies, otherwise None and the reason why not."""
    rates = recipe.pairs.correlation(recipe.world)
    if not recipe.world.gaussian:
        return None, "No bound: it assumes a Gaussian world, and this one is not."
    if rates is None or max(rates) - min(rates) > 1e-9:
        return None, "No bound: it assumes one rate for all directions, and this world has several."
    if latents != recipe.world.dim:
        return None, f"No bound: it assumes as many latents as states, but there are {latents} and {recipe.world.dim}."
    if not 0 < rates[0] < 1:
        return None, "No bound: the two views of a pair are uncorrelated."
    return rates[0], ""


def train_job(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """One job of a sweep: train a run, or resume it."""
    place = Path(folder)
    built = recipe_from_plain(recipe)
    exists = (place / "recipe.yaml").exists()
    if exists and recipe_id(any_recipe(place)) != recipe_id(built):
        raise InputError(f"{place} contains a run of another recipe. Choose another folder for this sweep.")
    outcome = resume_run(place) if exists else start_run(built, place)
    verdicts = [outcome.verdict.to_json()] if outcome.verdict else []
    return {"status": outcome.status, "step": outcome.step, "verdicts": verdicts}


def run_job(recipe: dict[str, Any], folder: str, samples: int = SAMPLES) -> dict[str, Any]:
    """One job of a sweep: train a run, or resume it, then certify it if it finished."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        record = certify_run(Path(folder), samples=samples, seed=recipe["seed"])
        result["verdicts"] += [verdict.to_json() for verdict in record.verdicts]
    return result
