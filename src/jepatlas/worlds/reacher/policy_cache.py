"""Where learned policies are kept: one safetensors file for each setting, in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from jepatlas.base.caches import cache_folder
from jepatlas.base.config import to_plain
from jepatlas.base.errors import InputError
from jepatlas.base.files import write_bytes

__all__ = ["alone", "policy_path", "read_policy", "write_policy"]

PROCEDURE = 1  # to be raised whenever training changes: policies made before are then left alone


def policy_path(settings: Any) -> Path:
    text = json.dumps({"procedure": PROCEDURE, **to_plain(settings)}, sort_keys=True)
    return cache_folder() / f"reacher-sac-{hashlib.sha256(text.encode()).hexdigest()[:16]}.safetensors"


@contextmanager
def alone(settings: Any) -> Iterator[None]:
    """One process of this machine at a time: workers that need the same policy wait for the first to train it.

    The lock is the system's, so it does not outlive its process. Where there is none, every worker trains its own.
    """
    path = policy_path(settings).with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        if sys.platform != "win32":
            import fcntl  # noqa: PLC0415  (there is none on Windows)

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
