"""A run, from recipe to certificate, and the folder it lives in.

recipe.yaml    metrics.jsonl    checkpoints/step-N/    records/*.json    report.html
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import torch
from rich.console import Console
from torch import nn

from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import process_group, rank
from jepatlas.core.errors import InputError
from jepatlas.core.files import write_text
from jepatlas.core.provenance import provenance
from jepatlas.core.records import Record
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import PairObjective
from jepatlas.recipes import (
    AnyRecipe,
    Recipe,
    any_recipe,
    build_objective,
    load_recipe,
    recipe_from_plain,
    recipe_id,
    recipe_text,
)
from jepatlas.training import Outcome, latest_checkpoint, load_checkpoint, load_weights, train, wait_for_all
from jepatlas.workflows.certify import Certificate, certificate

__all__ = ["certify_run", "load_objective", "resume_run", "run_job", "start_run", "train_job", "trained"]

T = TypeVar("T", bound=nn.Module)

SMALLEST = 100  # samples of a certificate: fewer say nothing
SAMPLES = 40_000


def start_run(recipe: AnyRecipe, folder: Path, console: Console | None = None) -> Outcome:
    """Train a new run in `folder`, which must not hold one already."""
    if (folder / "recipe.yaml").exists() or (folder / "checkpoints").exists():
        raise InputError(
            f"{folder} already holds a run. Resume it with --resume {quote(str(folder))}, or choose another --out."
        )
    recipe.training.check_machine()
    with process_group(recipe.training.device):  # no name in here holds what is trained: it must not outlive the group
        return _begin(recipe, folder, console)


def _begin(recipe: AnyRecipe, folder: Path, console: Console | None) -> Outcome:
    # Before anything is written: a recipe that cannot be built leaves no trace.
    objective, batches = recipe.build()
    wait_for_all()  # to look, or one would find what another has just written
    if rank() == 0:
        write_text(folder / "recipe.yaml", recipe_text(recipe))
    return _train(recipe, objective, batches, folder, console)


def resume_run(folder: Path, console: Console | None = None) -> Outcome:
    """Go on from the newest checkpoint, or from the start where there is none."""
    recipe = any_recipe(folder)
    with process_group(recipe.training.device):
        return _train(recipe, *recipe.build(), folder, console)


def _train(recipe: AnyRecipe, objective: Any, batches: Batches, folder: Path, console: Console | None) -> Outcome:
    outcome = train(objective, batches, recipe.training, folder, recipe=recipe_id(recipe), console=console)
    if rank() == 0:
        verdicts = (outcome.verdict,) if outcome.verdict else ()
        how = "was interrupted" if outcome.status == "interrupted" else outcome.status
        summary = f"The run {how} after {outcome.step} of {recipe.training.steps} steps."
        Record("Outcome", summary, provenance(recipe.seed), verdicts).save(folder, "outcome")
    return outcome


def load_objective(folder: Path) -> tuple[Recipe, PairObjective]:
    """A trained objective, ready for use: averaged weights where the run kept them."""
    recipe = load_recipe(folder)
    return recipe, trained(build_objective(recipe), recipe, folder)


def trained(objective: T, recipe: AnyRecipe, folder: Path) -> T:
    """An objective with the weights of a run's newest checkpoint, in evaluation mode."""
    newest = latest_checkpoint(folder / "checkpoints")
    if newest is None:
        raise InputError(
            f"{folder} has no checkpoint: it has not come far enough, or it failed before one was due (see its "
            f"records/outcome.json). Go on with 'jepatlas train --resume {quote(str(folder))}', or train anew with "
            "other settings."
        )
    load_weights(objective, load_checkpoint(newest, recipe_id(recipe)).tensors)
    return objective.eval()


def certify_run(
    folder: Path, *, samples: int = SAMPLES, seed: int = 0, out: Path | None = None, audited: bool = False
) -> Certificate:
    """Certify a run on fresh samples of its world, and keep the record as `records/certificate.json`.

    `audited` also reads the ladder of the observations and audits the latents, which takes longer than the rest.
    """
    if samples < SMALLEST:
        raise InputError(f"A certificate needs at least {SMALLEST} samples, but {samples} were asked for.")
    recipe, objective = load_objective(folder)
    pairs = recipe.pairs.draw(recipe.world, samples, torch_generator(seed, "certify"))
    with torch.no_grad():
        latents = {"h": objective.encode(pairs.x), "h_next": objective.encode(pairs.x_next)}
    arrays = {
        name: value.numpy() for name, value in (latents | {"z": pairs.z, "x": pairs.x, "x_next": pairs.x_next}).items()
    }
    rho, note = _one_rate(recipe, arrays["h"].shape[1])
    about = {"trained with seed": recipe.seed, "step": _step(folder)}
    title = f"Certificate of {folder.name}"
    record = certificate(title, arrays, rho=rho, seed=seed, audited=audited, note=note, about=about)
    record.save(out or folder, "certificate")
    return record


def train_job(recipe: dict[str, Any], folder: str) -> dict[str, Any]:
    """One job of a sweep: train, or go on."""
    place, built = Path(folder), recipe_from_plain(recipe)
    begun = (place / "recipe.yaml").exists()
    if begun and recipe_id(any_recipe(place)) != recipe_id(built):
        raise InputError(f"{place} holds a run of another recipe. Choose another folder for this sweep.")
    outcome = resume_run(place) if begun else start_run(built, place)
    result: dict[str, Any] = {"status": outcome.status, "step": outcome.step}
    result["verdicts"] = [outcome.verdict.to_json()] if outcome.verdict else []
    return result


def run_job(recipe: dict[str, Any], folder: str, samples: int = SAMPLES) -> dict[str, Any]:
    """One job of a sweep: train (or go on), then certify what was finished."""
    result = train_job(recipe, folder)
    if result["status"] == "finished":
        record = certify_run(Path(folder), samples=samples, seed=recipe["seed"])
        result["verdicts"] += [verdict.to_json() for verdict in record.verdicts]
    return result


def _step(folder: Path) -> int:
    newest = latest_checkpoint(folder / "checkpoints")
    assert newest is not None  # it was loaded
    return int(newest.name.removeprefix("step-"))


def _one_rate(recipe: Recipe, dim: int) -> tuple[float | None, str]:
    """The pairs' correlation if the bound applies, else why it does not."""
    rates = recipe.pairs.correlation(recipe.world)
    if not recipe.world.gaussian:
        return None, "No bound is given: it presumes a Gaussian world, and this one is not."
    if rates is None or max(rates) - min(rates) > 1e-9:
        return None, "No bound is given: it presumes one rate for all directions, and this world has several."
    if dim != recipe.world.dim:
        return None, f"No bound is given: it presumes as many latents as states, not {dim} for {recipe.world.dim}."
    if not 0 < rates[0] < 1:
        return None, "No bound is given: the two views of a pair are not correlated."
    return rates[0], ""
