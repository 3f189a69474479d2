"""A student: what it learns by alone, and beside it what a teacher has told of states that both have seen.

    L = L_own(crops) + weight · lesson(f(x), told)

The teacher is not there: of each shared state only what it told is given, its latent or its logits, as plain numbers.
Reference: Algorithm 2 of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, PairedCrops
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.parts import CropObjective

__all__ = ["Student"]


class Lesson(Protocol):
    """How far a student is from what it was told, and what is remembered of it after a step."""

    def __call__(self, h: Tensor, told: Tensor) -> Tensor: ...  # (b, d), (b, k) → ()

    def after_step(self, step: int) -> None: ...


class Student(nn.Module):
    """Any objective on images with a lesson beside it; to the loop it is the student that is trained."""

    def __init__(self, own: CropObjective, lesson: nn.Module, weight: float) -> None:
        super().__init__()
        self.own, self.weight = own, weight
        self.lesson = lesson

    def forward(self, batch: PairedCrops, step: int) -> Loss:
        own = self.own(batch.own[0], step)
        image, told = batch.shared
        h = at_least_float32(self.own.encode(image))
        if len(told) != len(h):
            raise InputError(f"The teacher tells of each shared state, but there are {len(h)} and {len(told)} rows.")
        with torch.autocast(h.device.type, enabled=False):
            taught = self.lesson(h, told.to(h))
        terms = {**own.terms, "own": own.total.detach(), "taught": taught.detach()}
        return Loss(own.total + self.weight * taught, terms)

    def encode(self, x: Tensor) -> Tensor:
        return self.own.encode(x)

    def after_step(self, step: int) -> None:
        self.own.after_step(step)
        lesson: Lesson = self.lesson  # pyright: ignore[reportAssignmentType]
        lesson.after_step(step)

    def smallest_batch(self, dim: int) -> int:
        return self.own.smallest_batch(dim)
