"""From decoded images to what a network receives: resize, crop the centre, scale, standardise.

    x = (pixels / 255 − mean) / std

The settings are those of the model's `preprocessor_config.json`. transformers has its own implementation, but for some
models, and for all videos, it needs torchvision; this one then takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require

__all__ = ["Preprocessing"]

BILINEAR = 2  # the number of PIL.Image.Resampling
BICUBIC = 3


@dataclass(frozen=True)
class Preprocessing:
    """Sizes are (height, width)."""

    size: tuple[int, int] | None = None
    """Resize to this size; None to keep it."""
    shortest: int | None = None
    """Or resize so that the shorter side has this length."""
    crop: tuple[int, int] | None = None
    """Then cut this size from the centre."""
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    scale: float = 1 / 255
    resample: int = BILINEAR

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or min(self.std) <= 0:
            raise InputError(f"mean and std need one value per channel, and std above 0, not {self.mean}, {self.std}.")
        if any(side < 1 for side in (*(self.size or ()), *(self.crop or ()), self.shortest or 1)):
            raise InputError(f"Sizes of images must be positive, not {self.size}, {self.shortest}, {self.crop}.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Preprocessing:
        """The settings of a `preprocessor_config.json` of transformers.

        >>> config = {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "resample": 3}
        >>> one = Preprocessing.from_config(config)
        >>> one.shortest, one.crop, one.resample
        (256, (224, 224), 3)
        """
        size = config.get("size") if config.get("do_resize", True) else None
        crop = config.get("crop_size") if config.get("do_center_crop", "crop_size" in config) else None
        shortest = size.get("shortest_edge") if isinstance(size, Mapping) else None
        normalise = config.get("do_normalize", "image_mean" in config)
        rescale = config.get("do_rescale", True)
        return cls(
            size=None if shortest else _height_and_width(size),
            shortest=shortest,
            crop=_height_and_width(crop),
            mean=tuple(config.get("image_mean") or (0.5,) * 3) if normalise else (0.0,) * 3,
            std=tuple(config.get("image_std") or (0.5,) * 3) if normalise else (1.0,) * 3,
            scale=config.get("rescale_factor", 1 / 255) if rescale else 1.0,
            resample=config.get("resample", BILINEAR),
        )

    def changed(self, size: int | None, mean: tuple[float, ...] | None, std: tuple[float, ...] | None) -> Preprocessing:
        """With another size, mean or standard deviation, where one is given."""
        sized = self if size is None else replace(self, size=(size, size), shortest=None, crop=None)
        return replace(sized, mean=mean or self.mean, std=std or self.std)

    def __call__(self, images: Iterable[np.ndarray]) -> np.ndarray:
        """Images (height, width, 3) in uint8, of any sizes, as (b, 3, height, width) in float32."""
        resized = self.resized(images)
        mean, std = (np.array(one, np.float32)[:, None, None] for one in (self.mean, self.std))
        pixels = np.moveaxis(resized, 3, 1).astype(np.float32)
        pixels *= self.scale
        pixels -= mean
        pixels /= std
        return pixels

    def resized(self, images: Iterable[np.ndarray]) -> np.ndarray:
        """Images as one array (b, height, width, 3) in uint8, resized and cropped."""
        found = [self._resize(image) for image in images]
        shapes = {image.shape for image in found}
        if len(shapes) > 1:
            raise InputError(f"The images have different sizes, such as {sorted(shapes)[:2]}. Give a size (--size).")
        return np.stack(found)

    def _resize(self, image: np.ndarray) -> np.ndarray:
        height, width = image.shape[:2]
        target = self.size
        if self.shortest is not None:
            ratio = max(height, width) / min(height, width)
            long = int(self.shortest * ratio)
            target = (self.shortest, long) if height <= width else (long, self.shortest)
        if target is not None and target != (height, width):
            library = require("PIL.Image", "vision", "Resizing images")
            image = np.asarray(library.fromarray(image).resize(target[::-1], self.resample))
        return image if self.crop is None else _central(image, self.crop)


def _height_and_width(size: Any) -> tuple[int, int] | None:
    if size is None:
        return None
    if isinstance(size, Mapping):
        return (int(size["height"]), int(size["width"])) if "height" in size else None
    if isinstance(size, int):
        return size, size
    height, width = size
    return int(height), int(width)


def _central(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The centre of an image, with black around it if it is smaller."""
    lacking = [max(want - have, 0) for want, have in zip(size, image.shape, strict=False)]
    if any(lacking):
        image = np.pad(image, [((lack + 1) // 2, lack // 2) for lack in lacking] + [(0, 0)])
    top, left = ((have - want) // 2 for want, have in zip(size, image.shape, strict=False))
    return image[top : top + size[0], left : left + size[1]]
