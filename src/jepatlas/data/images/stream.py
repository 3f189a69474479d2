"""The stream of batches of augmented crops: what an agent on images is trained on.

Every image comes once in each epoch, in an order drawn from (seed, epoch), and what is drawn for its crops depends on
(seed, step) and its place in the joint batch. So a batch is a function of its step: a run that goes on sees what it
would have seen, and W processes together see exactly what one would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.batches import check_batch_split, process_rows
from jepatlas.data.images.augment import augment, colour
from jepatlas.data.images.crops import CropPlan
from jepatlas.data.images.pipelines import Pipeline, draw
from jepatlas.data.images.shuffles import Shuffle

__all__ = ["ImageStream"]


@dataclass(frozen=True)
class ImageStream:
    """The crops of each training step.

    `images` may be memory-mapped, and grey; only the rows of a batch are read. A batch may span two epochs.
    """

    images: np.ndarray  # (n, height, width, 3) or (n, height, width), bytes
    batch_size: int  # of all processes together
    seed: int
    plan: CropPlan = field(default_factory=CropPlan)
    rows: np.ndarray | None = None  # which images to draw from; all where none are given
    shuffle: Shuffle | None = None  # what is done to images before they are augmented
    name: str = "images"  # streams of one seed that should differ have different names
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_batch_split(self.batch_size, self.rank, self.world_size)
        colour(self.images[:0])  # what is wrong with the images is said before the first step
        if self.batch_size > self.count:
            raise InputError(
                f"A batch of {self.batch_size} is larger than the {self.count} images, so it would hold some of them "
                "twice. Choose a smaller batch, or more images."
            )

    @property
    def count(self) -> int:
        """How many images an epoch has."""
        return len(self._chosen)

    def __call__(self, step: int) -> Crops:
        mine = process_rows(self.batch_size, self.rank, self.world_size)
        rows = self.rows_of(step)[mine]
        given = colour(np.asarray(self.images[rows]))
        given = given if self.shuffle is None else self.shuffle(given, rows)
        images = torch.from_numpy(given).to(self.device)
        x, *others = (self._crop(images, number, step, mine) for number in range(len(self._crops)))
        return Crops(x, tuple(others))

    def rows_of(self, step: int) -> np.ndarray:
        """The rows of the joint batch of a step."""
        places = step * self.batch_size + np.arange(self.batch_size)
        epochs, within = np.divmod(places, self.count)
        orders = {epoch: _order(self.seed, self.name, epoch, self.count) for epoch in np.unique(epochs).tolist()}
        order = [orders[epoch][place] for epoch, place in zip(epochs.tolist(), within.tolist(), strict=True)]
        return self._chosen[np.array(order)]

    def _crop(self, images: Tensor, number: int, step: int, mine: slice) -> Tensor:
        pipeline, size = self._crops[number]
        rng = numpy_generator(self.seed, f"{self.name}/crop {number}", step)
        return augment(images, draw(pipeline, self.batch_size, self._shape, rng).rows(mine), size)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.images.shape[1], self.images.shape[2]

    @cached_property
    def _crops(self) -> list[tuple[Pipeline, tuple[int, int]]]:
        return self.plan.each(self._shape)

    @cached_property
    def _chosen(self) -> np.ndarray:
        given = np.arange(len(self.images)) if self.rows is None else np.asarray(self.rows, dtype=np.int64)
        if bad := given[(given < 0) | (given >= len(self.images))].tolist():
            raise InputError(f"There are the images 0 to {len(self.images) - 1}, but number {bad[0]} was asked for.")
        return given


@lru_cache(maxsize=8)
def _order(seed: int, name: str, epoch: int, count: int) -> np.ndarray:
    return numpy_generator(seed, f"{name}/epoch", epoch).permutation(count)
