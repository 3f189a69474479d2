"""Where learned policies are kept: one safetensors file for each setting, in the user's cache folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError
from jepatlas.core.files import cache_folder, write_bytes
from jepatlas.core.sealing import sha256_of_json

__all__ = ["policy_path", "read_policy", "write_policy"]

PROCEDURE = 1  # to be raised whenever training changes: policies made before are then left alone


def policy_path(settings: Any) -> Path:
    key = sha256_of_json({"procedure": PROCEDURE, **to_plain(settings)})[:16]
    return cache_folder() / f"reacher-sac-{key}.safetensors"


def write_policy(settings: Any, weights: dict[str, Tensor]) -> None:
    tensors = {name: value.detach().contiguous() for name, value in weights.items()}
    write_bytes(policy_path(settings), save(tensors, {"settings": json.dumps(to_plain(settings))}))


def read_policy(settings: Any) -> dict[str, Tensor]:
    path = policy_path(settings)
    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"The policy {path} could not be read ({error}). Delete it, and it is trained anew."
        ) from error
