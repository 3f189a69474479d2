"""Checkpoints: a folder `step-N` with tensors (safetensors) and a JSON that names their hash, step and recipe.

A folder takes its name only when it is whole; a kill or a full disk leaves the previous ones as they were.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import safetensors.torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, sha256, write_folder, write_json

__all__ = ["Checkpoint", "fingerprint", "latest_checkpoint", "load_checkpoint", "save_checkpoint"]

TENSORS, META = "state.safetensors", "checkpoint.json"


@dataclass(frozen=True)
class Checkpoint:
    step: int
    tensors: dict[str, Tensor]
    flat: int = 0
    """Looks in a row, up to this step, that found the latents flat."""


def fingerprint(recipe: Any) -> str:
    """A hash of plain recipe data: a checkpoint fits the recipe it was made by, and no other."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def save_checkpoint(folder: Path, checkpoint: Checkpoint, recipe: str, keep: int) -> Path:
    """Write `folder/step-N`, then remove all but the `keep` newest, and what a kill left unfinished."""
    path = folder / f"step-{checkpoint.step}"
    try:
        with write_folder(path) as part:
            safetensors.torch.save_file(checkpoint.tensors, part / TENSORS)
            meta = {"format": 1, "step": checkpoint.step, "flat": checkpoint.flat, "recipe": recipe}
            meta |= {"sha256": {TENSORS: sha256(part / TENSORS)}}
            write_json(part / META, meta | {"seal": fingerprint(meta)})
    except InputError as error:
        raise InputError(f"{error} Then go on with: jepatlas train --resume {quote(str(folder.parent))}") from error
    for old in [*_all(folder)[:-keep], *folder.glob(".step-*")]:
        shutil.rmtree(old)
    return path


def latest_checkpoint(folder: Path) -> Path | None:
    return _all(folder)[-1] if _all(folder) else None


def load_checkpoint(path: Path, recipe: str) -> Checkpoint:
    """Read a checkpoint, or say what is wrong with it."""
    remedy = "Delete that folder to go on from the checkpoint before it."
    try:
        meta = read_json(path / META)
    except InputError as error:
        raise InputError(f"{error} {remedy}") from error
    if not _describes(meta):
        raise InputError(f"{path / META} is not a checkpoint's description. {remedy}")
    seal = meta.pop("seal")
    if seal != fingerprint(meta) or path.name != f"step-{meta['step']}":
        raise InputError(f"{path} was edited or renamed: it no longer says what was written there. {remedy}")
    if meta["recipe"] != recipe:
        raise InputError(
            f"{path} was made by another recipe than the one in this run folder. "
            "Restore the recipe, or start a new run in another folder."
        )
    for name, expected in meta["sha256"].items():
        if not (path / name).is_file() or sha256(path / name) != expected:
            raise InputError(
                f"{path / name} is damaged: its hash is not the one recorded when it was written. {remedy}"
            )
    return Checkpoint(meta["step"], safetensors.torch.load_file(path / TENSORS), meta.get("flat", 0))


def _describes(meta: Any) -> bool:
    match meta:
        case {"step": int(), "recipe": str(), "seal": str(), "sha256": {"state.safetensors": str()}}:
            return True
    return False


def _all(folder: Path) -> list[Path]:
    """Checkpoint folders by step; unfinished ones begin with a dot and do not count."""
    found = [path for path in folder.glob("step-*") if path.name.removeprefix("step-").isdecimal()]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))
