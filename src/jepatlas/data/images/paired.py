"""The stream of what agents that teach each other are given: their own crops, and states that they share.

Streams of shared states have one name, one seed and as many rows in one order, so that they show the same states in
each step. Where a teacher is not there any more, what it told stands in the place of its images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.contracts import Batches
from jepatlas.core.records import PairedCrops
from jepatlas.data.batches import process_rows
from jepatlas.data.images.stream import ImageStream

__all__ = ["PairedStream"]


@dataclass(frozen=True)
class PairedStream:
    """Batches of a student with one `shared` stream and what was `told`, or of two agents with two streams."""

    own: tuple[Batches, ...]
    shared: tuple[ImageStream, ...]
    told: np.ndarray | None = None  # (images of the student, k): rows that are not shared are never asked for

    def __call__(self, step: int) -> PairedCrops:
        images = [stream(step).x for stream in self.shared]
        first, second = images if self.told is None else (images[0], self._told(self.told, step))
        return PairedCrops(tuple(crops(step) for crops in self.own), (first, second))

    def _told(self, told: np.ndarray, step: int) -> Tensor:
        stream = self.shared[0]
        rows = stream.rows_of(step)[process_rows(stream.batch_size, stream.rank, stream.world_size)]
        return torch.from_numpy(told[rows]).to(stream.device)
