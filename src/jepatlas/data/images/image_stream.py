"""Batches of augmented crops, for training on images.

Every epoch visits each image once, in an order drawn from (seed, epoch). The augmentation of an image depends on (seed,
step) and its position in the joint batch. A batch is therefore a function of the step, also after a resume, and the
joint batch does not depend on the number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError
from jepatlas.core.records import Crops, PairedCrops
from jepatlas.core.seeding import numpy_generator
from jepatlas.data.batches import check_batch_split, process_rows
from jepatlas.data.images.augment import augment
from jepatlas.data.images.decoding import rgb_bytes
from jepatlas.data.images.pipelines import CropPlan, Pipeline, draw
from jepatlas.data.images.shuffles import Shuffle

__all__ = ["ImageStream", "PairedStream"]


@dataclass(frozen=True)
class ImageStream:
    """The crops of each training step.

    `images` may be memory-mapped or grey; only the rows of a batch are read. A batch may span two epochs.
    """

    images: np.ndarray  # (n, height, width, 3) or (n, height, width), uint8
    batch_size: int  # over all processes
    seed: int
    plan: CropPlan = field(default_factory=CropPlan)
    rows: np.ndarray | None = None  # images to sample from; None for all
    shuffle: Shuffle | None = None  # applied before augmentation
    name: str = "images"  # distinguishes the random numbers of streams with the same seed
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_batch_split(self.batch_size, self.rank, self.world_size)
        rgb_bytes(self.images[:0])  # validates type and shape before the first step
        if self.batch_size > self.count:
            raise InputError(
                f"batch_size {self.batch_size} is larger than the number of images, {self.count}. Use a smaller batch "
                "or more images."
            )

    @property
    def count(self) -> int:
        """Number of images per epoch."""
        return len(self._chosen)

    def __call__(self, step: int) -> Crops:
        mine = process_rows(self.batch_size, self.rank, self.world_size)
        rows = self.rows_of(step)[mine]
        pixels = rgb_bytes(np.asarray(self.images[rows]))
        if self.shuffle is not None:
            pixels = self.shuffle(pixels, rows)
        images = torch.from_numpy(pixels).to(self.device)
        x, *others = (self._crop(images, number, step, mine) for number in range(len(self._crops)))
        return Crops(x, tuple(others))

    def rows_of(self, step: int) -> np.ndarray:
        """The rows of the joint batch of a step."""
        positions = step * self.batch_size + np.arange(self.batch_size)
        epochs, within = np.divmod(positions, self.count)
        order = np.empty(self.batch_size, np.int64)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            order[here] = _epoch_order(self.seed, self.name, epoch, self.count)[within[here]]
        return self._chosen[order]

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
        if self.rows is None:
            return np.arange(len(self.images))
        chosen = np.asarray(self.rows, dtype=np.int64)
        invalid = chosen[(chosen < 0) | (chosen >= len(self.images))]
        if len(invalid):
            raise InputError(f"There are images 0 to {len(self.images) - 1}, but image {invalid[0]} was requested.")
        return chosen


@lru_cache(maxsize=8)
def _epoch_order(seed: int, name: str, epoch: int, count: int) -> np.ndarray:
    return numpy_generator(seed, f"{name}/epoch", epoch).permutation(count)


@dataclass(frozen=True)
class PairedStream:
    """Batches for teaching: each agent's own crops, and shared states.

    For two agents that learn together, `shared` has two streams with equal name, seed, order and batch size, so that
    they show the same states. For a student of a stored teacher, `shared` has one stream and `targets` holds the
    teacher's outputs for the student's images, (images, k); rows outside the shared states are not used.
    """

    own: tuple[Batches, ...]
    shared: tuple[ImageStream, ...]
    targets: np.ndarray | None = None

    def __call__(self, step: int) -> PairedCrops:
        own = tuple(crops(step) for crops in self.own)
        images = [stream(step).x for stream in self.shared]
        if self.targets is None:
            return PairedCrops(own, (images[0], images[1]))
        stream = self.shared[0]
        rows = stream.rows_of(step)[process_rows(stream.batch_size, stream.rank, stream.world_size)]
        return PairedCrops(own, (images[0], torch.from_numpy(self.targets[rows]).to(stream.device)))
