"""Augmentation pipelines, their random draws, and the crops that an objective receives.

Pipeline A is that of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models": random
resized crop, flip, colour jitter and grayscale. Pipeline B adds blur and solarisation. The order of the operations is
that of SimCLR and BYOL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, did_you_mean
from jepatlas.core.records import CropKind

__all__ = ["PIPELINES", "CropPlan", "Drawn", "Pipeline", "draw", "pipeline_named"]

BOX_TRIES = 10  # boxes drawn per image; the first that fits is used, as in kornia and torchvision
PROBABILITIES = ("flip", "jitter", "grey", "blur", "solarise")
STRENGTHS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class Pipeline:
    """Augmentations of an image in the order in which they are applied, with their probabilities."""

    kind: ClassVar[str] = "pipeline"

    scale: tuple[float, float] | None = (0.2, 1.0)
    """Area of the crop as a share of the image; None disables cropping."""
    ratio: float = 4 / 3
    """Largest factor between the aspect ratios of the crop and the image."""
    flip: float = 0.5
    """Probability of a horizontal flip."""
    jitter: float = 0.0
    """Probability of colour jitter: the next four operations in random order."""
    brightness: float = 0.4
    """Brightness factor in 1 ± brightness."""
    contrast: float = 0.4
    """Contrast factor in 1 ± contrast, relative to the mean grey value."""
    saturation: float = 0.4
    """Saturation factor in 1 ± saturation."""
    hue: float = 0.1
    """Largest rotation of the hue, as a share of the circle."""
    grey: float = 0.0
    """Probability of conversion to grayscale."""
    blur: float = 0.0
    """Probability of Gaussian blur, σ from 0.1 to 2 pixels."""
    solarise: float = 0.0
    """Probability of inverting pixels above one half."""

    def __post_init__(self) -> None:
        if self.scale is not None and not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise InputError(f"scale must be a range 0 < low ≤ high ≤ 1, but is {self.scale}.")
        check_argument("ratio", self.ratio, self.ratio >= 1, "at least 1")
        for name in (*PROBABILITIES, *STRENGTHS):
            limit = 0.5 if name == "hue" else 1.0
            check_argument(name, getattr(self, name), 0 <= getattr(self, name) <= limit, f"between 0 and {limit:g}")


PIPELINES: Mapping[str, Pipeline] = {
    "A": Pipeline(jitter=0.8, grey=0.2),
    "B": Pipeline(jitter=0.8, grey=0.2, blur=0.5, solarise=0.2),
    "plain": Pipeline(),
    "mild": Pipeline(jitter=0.8, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05),
    "none": Pipeline(scale=None, flip=0.0),
}
"""`plain` crops and flips, for grey images; `mild` has weaker jitter, for driving scenes; `none` only resizes."""


def pipeline_named(name: str) -> Pipeline:
    if name not in PIPELINES:
        raise InputError(f"There is no augmentation pipeline '{name}'. {did_you_mean(name, PIPELINES)}")
    return PIPELINES[name]


@dataclass(frozen=True)
class Drawn:
    """The random numbers of a pipeline for b images."""

    boxes: np.ndarray  # (b, 4) int64: top, left, height, width
    flips: np.ndarray  # (b,) bool
    orders: np.ndarray  # (b, 4) int64: operation at each position (index in STRENGTHS); −1 for no jitter
    factors: np.ndarray  # (b, 4) float32: factor of each operation in STRENGTHS
    greys: np.ndarray  # (b,) bool
    sigmas: np.ndarray  # (b,) float32; 0 for no blur
    solarised: np.ndarray  # (b,) bool

    def rows(self, rows: slice) -> Drawn:
        return Drawn(*(getattr(self, field.name)[rows] for field in fields(self)))


def draw(pipeline: Pipeline, count: int, shape: tuple[int, int], rng: np.random.Generator) -> Drawn:
    """Random numbers for `count` images of `shape` (height, width).

    The amount of numbers drawn from `rng` does not depend on the outcome.
    """
    chance = dict(zip(PROBABILITIES, rng.random((len(PROBABILITIES), count)), strict=True))
    strengths = np.array([getattr(pipeline, name) for name in STRENGTHS])
    factors = np.array([1.0, 1.0, 1.0, 0.0]) + strengths * (2 * rng.random((count, 4)) - 1)
    orders = np.argsort(rng.random((count, 4)), axis=1)
    sigmas = 0.1 + 1.9 * rng.random(count)
    applied = {name: chance[name] < getattr(pipeline, name) for name in PROBABILITIES}
    return Drawn(
        boxes=_draw_boxes(pipeline, count, shape, rng),
        flips=applied["flip"],
        orders=np.where(applied["jitter"][:, None], orders, -1),
        factors=factors.astype(np.float32),
        greys=applied["grey"],
        sigmas=np.where(applied["blur"], sigmas, 0).astype(np.float32),
        solarised=applied["solarise"],
    )


def _draw_boxes(pipeline: Pipeline, count: int, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Uniform area and log aspect ratio (relative to that of the image), then a uniform position."""
    height, width = shape
    if pipeline.scale is None:
        return np.tile(np.array([0, 0, height, width]), (count, 1))
    low, high = pipeline.scale
    area = low + (high - low) * rng.random((count, BOX_TRIES))
    stretch = np.exp(np.log(pipeline.ratio) * (2 * rng.random((count, BOX_TRIES)) - 1))
    heights = np.round(height * np.sqrt(area * (1 / stretch)))
    widths = np.round(width * np.sqrt(area * stretch))
    fits = (heights >= 1) & (heights <= height) & (widths >= 1) & (widths <= width)
    first = np.argmax(fits, axis=1)[:, None]
    any_fits = fits.any(1)  # otherwise the whole image is used
    box_height = np.where(any_fits, np.take_along_axis(heights, first, 1)[:, 0], height)
    box_width = np.where(any_fits, np.take_along_axis(widths, first, 1)[:, 0], width)
    position = rng.random((2, count))
    top = np.floor(position[0] * (height - box_height + 1))
    left = np.floor(position[1] * (width - box_width + 1))
    return np.stack([top, left, box_height, box_width], axis=1).astype(np.int64)


@dataclass(frozen=True)
class CropPlan:
    """The crops made of each image: one, two of full size, or two with several smaller ones."""

    kind: ClassVar[str] = "crops"

    crops: CropKind = "two"
    """One crop, two crops, or two with several smaller ones."""
    pipelines: tuple[str, ...] = ("A",)
    """Names of the augmentation pipelines; crops use them in turn."""
    scale: tuple[float, float] | None = None
    """Area of the large crops as a share of the image; by default that of the pipeline."""
    local: int = 4
    """Number of smaller crops, with `multi`."""
    local_size: tuple[int, int] = (32, 32)
    """Height and width of the smaller crops."""
    local_scale: tuple[float, float] = (0.05, 0.2)
    """Area of the smaller crops as a share of the image."""

    def __post_init__(self) -> None:
        check_argument("crops", self.crops, self.crops in ("one", "two", "multi"), "'one', 'two' or 'multi'")
        if not self.pipelines:
            raise InputError("pipelines must name at least one augmentation pipeline, but is empty.")
        for name in self.pipelines:
            pipeline_named(name)
        if self.local < 1 or min(self.local_size) < 1:
            raise InputError(f"local and local_size must be at least 1, but are {self.local} and {self.local_size}.")

    def each(self, shape: tuple[int, int]) -> list[tuple[Pipeline, tuple[int, int]]]:
        """Pipeline and size of every crop, for images of `shape` (height, width)."""
        count = {"one": 1, "two": 2, "multi": 2 + self.local}[self.crops]
        chosen = []
        for number in range(count):
            pipeline = pipeline_named(self.pipelines[number % len(self.pipelines)])
            if number >= 2:
                chosen.append((replace(pipeline, scale=self.local_scale), self.local_size))
            elif self.scale is None or pipeline.scale is None:
                chosen.append((pipeline, shape))
            else:
                chosen.append((replace(pipeline, scale=self.scale), shape))
        return chosen
