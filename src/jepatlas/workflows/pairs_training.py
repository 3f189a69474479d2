"""Training on pairs that the user gives in Python.

The run folder is that of every other run. It also has `latents.npz`, the latents of held-out pairs with which
`jepatlas certify RUN` certifies the encoder, because the data themselves are not in the folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import process_group, rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.data.given_pairs import IndexedPairs, LoaderPairs, as_dataset, hold_out_last, read_pairs
from jepatlas.objectives import PairObjective
from jepatlas.recipes import GivenModule, PairsRecipe, build_pairs_objective
from jepatlas.training import Outcome
from jepatlas.workflows.certify import SAMPLES, CertificateRecord, certify_arrays, check_samples
from jepatlas.workflows.runs import train_in_folder, trained

__all__ = ["certify_pairs", "load_pairs_objective", "train_on_pairs"]

LATENTS = "latents.npz"
MOST_OBSERVED = 64  # width of observations that are kept beside the latents
Data = Dataset[Any] | DataLoader[Any]


def train_on_pairs(
    recipe: PairsRecipe,
    folder: Path,
    data: Any,
    *,
    held: Any = None,
    encoder: nn.Module | None = None,
    resume: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Train on given pairs, and keep the latents of held-out ones.

    `held` are pairs that are not learned from. By default they are the last tenth of the data; of a DataLoader none.
    """
    if encoder is not None and not isinstance(encoder, nn.Module):
        raise InputError(f"'encoder' must be an nn.Module, not a {type(encoder).__name__}.")
    recipe.training.check_machine()
    with process_group(recipe.training.device):
        learnt, kept = _split(data, held)
        recipe, batches = _batches(recipe, learnt, encoder)
        objective = build_pairs_objective(recipe, encoder)
        outcome = train_in_folder(recipe, objective, batches, folder, console, resume=resume)
        if outcome.status == "finished" and kept is not None and rank() == 0:
            trained(objective, recipe, folder)
            write_arrays(folder / LATENTS, _latents(objective, read_pairs(kept), recipe.training.device))
    return outcome


def _split(data: Any, held: Any) -> tuple[Data, Data | None]:
    rows = data if isinstance(data, DataLoader) else as_dataset(data)
    if held is not None:
        return rows, held if isinstance(held, DataLoader) else as_dataset(held)
    return (rows, None) if isinstance(rows, DataLoader) else hold_out_last(rows)


def _batches(recipe: PairsRecipe, data: Data, encoder: nn.Module | None) -> tuple[PairsRecipe, Batches]:
    """The stream of batches, and the recipe with what the data and the encoder determine."""
    training = recipe.training
    if encoder is not None:
        recipe = replace(recipe, encoder=GivenModule(type(encoder).__name__))
    if isinstance(data, DataLoader):
        batches: LoaderPairs | IndexedPairs = LoaderPairs(data, training.device)
        total = batches.batch_size * world_size() * training.accumulate
        training = replace(training, batch_size=total)
    else:
        rows = training.batch_size // training.accumulate
        batches = IndexedPairs(data, rows, recipe.seed, training.device, rank(), world_size())
    first = batches(0)
    if encoder is not None:
        recipe = replace(recipe, latent_dim=_width(encoder, first.x))
    seen = {"shape": tuple(first.x.shape[1:]), "pixels": first.x.dtype == torch.uint8}
    return replace(recipe, training=training, **seen), batches


@torch.no_grad()
def _width(encoder: nn.Module, x: Tensor) -> int:
    training = encoder.training
    parameter = next(encoder.parameters(), x)
    h = encoder.eval()(x[:2].to(parameter.device))
    encoder.train(training)
    if h.ndim != 2:
        raise InputError(f"The encoder must give one vector per row, (b, d), but gave the shape {tuple(h.shape)}.")
    return h.shape[1]


@torch.no_grad()
def _latents(objective: PairObjective, held: Iterable[Pairs], device: str) -> dict[str, np.ndarray]:
    parts: dict[str, list[Tensor]] = {"h": [], "h_next": [], "x": [], "x_next": [], "z": []}
    count = 0
    for pairs in held:
        parts["h"].append(objective.encode(pairs.x.to(device)))
        parts["h_next"].append(objective.encode(pairs.x_next.to(device)))
        for name in ("x", "x_next", "z"):
            parts[name].append(getattr(pairs, name))
        count += len(pairs.x)
        if count >= SAMPLES:
            break
    arrays = {name: torch.cat(values).float().cpu().numpy() for name, values in parts.items() if values}
    if not arrays["z"].shape[1]:
        del arrays["z"]
    if arrays["x"].ndim != 2 or arrays["x"].shape[1] > MOST_OBSERVED:
        del arrays["x"], arrays["x_next"]
    return arrays


def load_pairs_objective(folder: Path | str, recipe: PairsRecipe) -> PairObjective:
    folder = Path(folder)
    return trained(build_pairs_objective(recipe), recipe, folder)


def certify_pairs(
    folder: Path, *, samples: int = SAMPLES, seed: int = 0, out: Path | None = None, quick: bool = False
) -> CertificateRecord:
    """Certify a run by its held-out latents, at most `samples`, and save `records/certificate.json`."""
    check_samples(samples)
    if not (folder / LATENTS).is_file():
        raise InputError(
            f"{folder} has no latents of held-out pairs, because the run did not finish or was given no such pairs. "
            "Give them when training: jepatlas.train(..., held=pairs)."
        )
    title = f"Certificate of {folder.name}"
    arrays = {name: array[:samples] for name, array in read_arrays(folder / LATENTS).items()}
    record = certify_arrays(title, arrays, rho=None, seed=seed, quick=quick)
    record.save(out or folder, "certificate")
    return record
