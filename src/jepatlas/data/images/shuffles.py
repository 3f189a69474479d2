"""Structure destroyed on purpose: patches or pixels of an image change places.

The structure ablation of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models" shuffles
patches ("spatial broken") and pixels ("total destruction"). It does not say whether each image has an order of its own
or all have one; both are here. One order for all is undone by an encoder that has no spatial prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.seeding import numpy_generator

__all__ = ["Shuffle"]


@dataclass(frozen=True)
class Shuffle:
    """Squares of `patch` × `patch` pixels change places; a patch of 1 is the pixel shuffle."""

    kind: ClassVar[str] = "shuffle"

    patch: int = 8
    """Side of the squares, in pixels; it divides the image's sides."""
    per: Literal["image", "data set"] = "image"
    """Whether each image has an order of its own, or all images have one."""
    seed: int = 0
    """Where the orders are drawn from, together with the image's number."""

    def __post_init__(self) -> None:
        if self.patch < 1 or self.per not in ("image", "data set"):
            raise InputError(
                f"A shuffle has a patch of at least 1 pixel, per 'image' or 'data set', but patch is "
                f"{self.patch} and per is '{self.per}'."
            )

    def __call__(self, images: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Images (b, height, width, …), of which each has its number in the data set."""
        count, height, width, *rest = images.shape
        if height % self.patch or width % self.patch:
            raise InputError(
                f"Patches of {self.patch} pixels do not fill images of {height} × {width}. Choose another."
            )
        grid = (height // self.patch, width // self.patch)
        parts = images.reshape(count, grid[0], self.patch, grid[1], self.patch, *rest).swapaxes(2, 3)
        parts = parts.reshape(count, grid[0] * grid[1], self.patch, self.patch, *rest)
        orders = np.stack([self._order(int(number), parts.shape[1]) for number in numbers])
        moved = parts[np.arange(count)[:, None], orders]
        moved = moved.reshape(count, *grid, self.patch, self.patch, *rest).swapaxes(2, 3)
        return np.ascontiguousarray(moved).reshape(images.shape)

    def _order(self, number: int, count: int) -> np.ndarray:
        return numpy_generator(self.seed, "shuffle", number if self.per == "image" else 0).permutation(count)
