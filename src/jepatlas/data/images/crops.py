"""Which crops of an image an objective is given: one, two of full size, or two and several smaller ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from jepatlas.core.errors import InputError
from jepatlas.core.records import CropKind
from jepatlas.data.images.pipelines import Pipeline, pipeline_named

__all__ = ["CropPlan"]


@dataclass(frozen=True)
class CropPlan:
    """Which crops are made of an image, and by which pipelines."""

    kind: ClassVar[str] = "crops"

    crops: CropKind = "two"
    """One crop, two, or two with several smaller ones."""
    pipelines: tuple[str, ...] = ("A",)
    """Names of pipelines, which the crops take in turn."""
    scale: tuple[float, float] | None = None
    """Area of the large crops, as a share of the image; that of their pipelines, where none is given."""
    local: int = 4
    """How many smaller crops, with `multi`."""
    local_size: tuple[int, int] = (32, 32)
    """Their height and width."""
    local_scale: tuple[float, float] = (0.05, 0.2)
    """Their area, as a share of the image."""

    def __post_init__(self) -> None:
        if self.crops not in ("one", "two", "multi"):
            raise InputError(f"Crops are 'one', 'two' or 'multi', but '{self.crops}' was given.")
        if not self.pipelines:
            raise InputError("Crops need at least one augmentation pipeline, but none was given.")
        for name in self.pipelines:
            pipeline_named(name)
        if self.local < 1 or min(self.local_size) < 1:
            raise InputError(
                f"Smaller crops have a number and a size of at least 1, but {self.local} of "
                f"{self.local_size} were given."
            )

    def each(self, shape: tuple[int, int]) -> list[tuple[Pipeline, tuple[int, int]]]:
        """The pipeline and the size of every crop, for images of `shape` (height, width)."""
        count = {"one": 1, "two": 2, "multi": 2 + self.local}[self.crops]
        chosen = [pipeline_named(self.pipelines[number % len(self.pipelines)]) for number in range(count)]
        return [
            (_of_scale(pipeline, self.scale), shape)
            if number < 2
            else (replace(pipeline, scale=self.local_scale), self.local_size)
            for number, pipeline in enumerate(chosen)
        ]


def _of_scale(pipeline: Pipeline, scale: tuple[float, float] | None) -> Pipeline:
    """One that does not crop goes on not to."""
    return pipeline if scale is None or pipeline.scale is None else replace(pipeline, scale=scale)
