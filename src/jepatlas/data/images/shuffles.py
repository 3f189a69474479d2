"""Shuffled patches or pixels of images, for structure ablations.

The ablation of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models" shuffles patches
("spatial broken") and pixels ("total destruction"). The paper does not say whether each image has its own permutation;
both variants are available. An encoder without spatial prior can undo a common permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.core.seeding import numpy_generator

__all__ = ["Shuffle"]


@dataclass(frozen=True)
class Shuffle:
    """Permute squares of `patch` × `patch` pixels; a patch of 1 shuffles pixels."""

    kind: ClassVar[str] = "shuffle"

    patch: int = 8
    """Side of the squares in pixels; must divide height and width."""
    per: Literal["image", "data set"] = "image"
    """Whether each image has its own permutation or all images share one."""
    seed: int = 0
    """Seed of the permutations, together with the number of the image."""

    def __post_init__(self) -> None:
        check_count("patch", self.patch)
        check_argument("per", self.per, self.per in ("image", "data set"), "'image' or 'data set'")

    def __call__(self, images: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Shuffle images (b, height, width, …), given their numbers in the data set."""
        count, height, width, *rest = images.shape
        if height % self.patch or width % self.patch:
            raise InputError(f"patch {self.patch} must divide the image size {height} × {width}.")
        grid = (height // self.patch, width // self.patch)
        parts = images.reshape(count, grid[0], self.patch, grid[1], self.patch, *rest).swapaxes(2, 3)
        parts = parts.reshape(count, grid[0] * grid[1], self.patch, self.patch, *rest)
        orders = np.stack([self._permutation(int(number), parts.shape[1]) for number in numbers])
        moved = parts[np.arange(count)[:, None], orders]
        moved = moved.reshape(count, *grid, self.patch, self.patch, *rest).swapaxes(2, 3)
        return np.ascontiguousarray(moved).reshape(images.shape)

    def _permutation(self, number: int, count: int) -> np.ndarray:
        return numpy_generator(self.seed, "shuffle", number if self.per == "image" else 0).permutation(count)
