"""Random generators derived from (seed, name, step).

No random state needs to be saved in checkpoints, because no generator outlives its step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
else:
    torch = lazy_import("torch")

__all__ = ["derive", "forked_rng", "numpy_generator", "torch_generator"]


def derive(seed: int, name: str, step: int = 0) -> int:
    """A 63-bit seed; different names and steps give independent streams.

    >>> derive(0, "pairs", 1) == derive(0, "pairs", 1), derive(0, "pairs", 1) == derive(0, "pairs", 2)
    (True, False)
    """
    digest = hashlib.blake2b(f"{seed}/{name}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def torch_generator(seed: int, name: str, step: int = 0, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(derive(seed, name, step))


def numpy_generator(seed: int, name: str, step: int = 0) -> np.random.Generator:
    return np.random.default_rng(derive(seed, name, step))


@contextmanager
def forked_rng(seed: int, name: str, step: int = 0) -> Iterator[None]:
    """Seed torch's global generator within the block, for code that uses it (initialisers, dropout)."""
    with torch.random.fork_rng():
        torch.manual_seed(derive(seed, name, step))
        yield
