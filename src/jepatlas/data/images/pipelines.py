"""Augmentation pipelines, and what they draw: everything random about a crop, as numbers that can be shown.

Pipeline A is that of "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models": a random
resized crop, flip, colour jitter and grey; B also blurs and solarises. Their order is that of SimCLR and BYOL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean

__all__ = ["PIPELINES", "Drawn", "Pipeline", "draw", "pipeline_named"]

TRIES = 10  # boxes drawn for each image; the first that fits is taken, as in kornia and torchvision
CHANCES = ("flip", "jitter", "grey", "blur", "solarise")
STRENGTHS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class Pipeline:
    """What is done to an image, each with its probability, in this order."""

    kind: ClassVar[str] = "pipeline"

    scale: tuple[float, float] | None = (0.2, 1.0)
    """Area of the crop, as a share of the image; None takes all of the image."""
    ratio: float = 4 / 3
    """How far the crop's proportions may leave those of the image, either way."""
    flip: float = 0.5
    """Probability of a horizontal flip."""
    jitter: float = 0.0
    """Probability of a colour jitter: the next four, in random order."""
    brightness: float = 0.4
    """The factor is drawn from 1 − brightness to 1 + brightness."""
    contrast: float = 0.4
    """As brightness, towards and away from the mean of grey."""
    saturation: float = 0.4
    """As brightness, towards and away from grey."""
    hue: float = 0.1
    """The hue turns by at most this share of the circle, either way."""
    grey: float = 0.0
    """Probability of losing all colour."""
    blur: float = 0.0
    """Probability of a Gaussian blur, σ from 0.1 to 2 pixels."""
    solarise: float = 0.0
    """Probability of inverting everything brighter than one half."""

    def __post_init__(self) -> None:
        if self.scale is not None and not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise InputError(f"A crop's scale is a range of shares, 0 < low ≤ high ≤ 1, but {self.scale} was given.")
        if not self.ratio >= 1:
            raise InputError(f"A crop's ratio must be at least 1, but {self.ratio} was given.")
        for name in (*CHANCES, *STRENGTHS):
            limit = 0.5 if name == "hue" else 1.0
            if not 0 <= getattr(self, name) <= limit:
                raise InputError(f"{name} lies between 0 and {limit:g}, but {getattr(self, name)} was given.")


PIPELINES: Mapping[str, Pipeline] = {
    "A": Pipeline(jitter=0.8, grey=0.2),
    "B": Pipeline(jitter=0.8, grey=0.2, blur=0.5, solarise=0.2),
    "plain": Pipeline(),
    "mild": Pipeline(jitter=0.8, brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05),
    "none": Pipeline(scale=None, flip=0.0),
}
"""`plain` crops and flips, for grey images; `mild` jitters less, for drives; `none` brings images to their size."""


def pipeline_named(name: str) -> Pipeline:
    if name not in PIPELINES:
        raise InputError(f"There is no augmentation pipeline '{name}'. {did_you_mean(name, PIPELINES)}")
    return PIPELINES[name]


@dataclass(frozen=True)
class Drawn:
    """What a pipeline drew for each of b images."""

    boxes: np.ndarray  # (b, 4) int64: top, left, height, width
    flips: np.ndarray  # (b,) bool
    orders: np.ndarray  # (b, 4) int64: which of brightness, contrast, saturation, hue comes when; −1 for no jitter
    factors: np.ndarray  # (b, 4) float32, of the four
    greys: np.ndarray  # (b,) bool
    sigmas: np.ndarray  # (b,) float32; 0 for no blur
    solarised: np.ndarray  # (b,) bool

    def rows(self, rows: slice) -> Drawn:
        return Drawn(*(getattr(self, field.name)[rows] for field in fields(self)))


def draw(pipeline: Pipeline, count: int, shape: tuple[int, int], rng: np.random.Generator) -> Drawn:
    """Draw for `count` images of `shape` (height, width); how much is drawn does not depend on what comes out."""
    chance = dict(zip(CHANCES, rng.random((len(CHANCES), count)), strict=True))
    strengths = np.array([getattr(pipeline, name) for name in STRENGTHS])
    factors = np.array([1.0, 1.0, 1.0, 0.0]) + strengths * (2 * rng.random((count, 4)) - 1)
    orders = np.argsort(rng.random((count, 4)), axis=1)
    sigmas = 0.1 + 1.9 * rng.random(count)
    done = {name: chance[name] < getattr(pipeline, name) for name in CHANCES}
    return Drawn(
        boxes=_boxes(pipeline, count, shape, rng),
        flips=done["flip"],
        orders=np.where(done["jitter"][:, None], orders, -1),
        factors=factors.astype(np.float32),
        greys=done["grey"],
        sigmas=np.where(done["blur"], sigmas, 0).astype(np.float32),
        solarised=done["solarise"],
    )


def _boxes(pipeline: Pipeline, count: int, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Area and proportions (relative to the image's own, on a log scale) are uniform, then the place is."""
    height, width = shape
    if pipeline.scale is None:
        return np.tile(np.array([0, 0, height, width]), (count, 1))
    low, high = pipeline.scale
    area = low + (high - low) * rng.random((count, TRIES))
    stretch = np.exp(np.log(pipeline.ratio) * (2 * rng.random((count, TRIES)) - 1))
    tall, wide = (np.round(side * np.sqrt(area * by)) for side, by in ((height, 1 / stretch), (width, stretch)))
    fits = (tall >= 1) & (tall <= height) & (wide >= 1) & (wide <= width)
    first = np.argmax(fits, axis=1)[:, None]
    tall, wide = (
        np.where(fits.any(1), np.take_along_axis(sides, first, 1)[:, 0], side)
        for sides, side in ((tall, height), (wide, width))
    )
    place = rng.random((2, count))
    top, left = np.floor(place[0] * (height - tall + 1)), np.floor(place[1] * (width - wide + 1))
    return np.stack([top, left, tall, wide], axis=1).astype(np.int64)
