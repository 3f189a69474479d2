"""Reading image files, and decoding a whole table once into a memory-mapped array.

`decode` writes a uint8 array (n, height, width, 3) to a cache folder whose name is a hash of the inputs: path, size and
modification time of every file, the target size and the resizing mode. The array is written atomically. Unreadable
images are left out, counted and reported.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, MissingExtra, require
from jepatlas.core.files import cache_folder, read_json, write_folder, write_json
from jepatlas.core.linear import subsample
from jepatlas.data.images.view_table import Fit, Mode, ViewTable

__all__ = ["Decoded", "decode", "pixel_scale", "read_image", "resize", "rgb_bytes"]

CACHE_VERSION = 3  # increase when decoding changes, so that older arrays are not used
SHOWN_ERRORS = 5
TASK_IMAGES = 16  # images per thread task
SCALE_IMAGES = 1000  # enough for the standard deviation of pixels to three digits
MINIMUM_SCALE = 1 / 255  # so that images without contrast are not amplified beyond one grey level

EXIF_ORIENTATION = 0x0112
TRANSPOSES = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
"""EXIF orientation → the `PIL.Image.Transpose` that turns the image upright."""

Progress = Callable[[int, int], None]
"""Called with the number of processed images and the total."""


def read_image(
    path: Path, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
) -> np.ndarray:
    """Read an image file as uint8 (height, width, 3), or (height, width) in grey; `size` is (width, height).

    Palette, CMYK and 16-bit images are converted to 8 bits, 16 bits by their full range. Transparent pixels become
    black. The EXIF orientation is applied.
    """
    library = require("PIL.Image", "vision", "Reading images")
    errors = (OSError, SyntaxError, ValueError, EOFError, KeyError, struct.error, library.DecompressionBombError)
    try:
        with library.open(path) as file:
            if size is not None:  # JPEG can be decoded at reduced size; keep at least twice the target
                file.draft(None, (2 * size[0], 2 * size[1]))
            image = _to_eight_bits(library, file)
            transpose = TRANSPOSES.get(file.getexif().get(EXIF_ORIENTATION))
            if transpose is not None:
                image = image.transpose(transpose)
            return resize(library, image, mode, size, fit)
    except FileNotFoundError as error:
        raise InputError(f"Image not found: {path}.") from error
    except errors as error:  # raised by pillow's plugins for truncated or foreign files
        empty = path.is_file() and path.stat().st_size == 0
        raise InputError(f"{path} cannot be read as an image: {'it is empty' if empty else error}") from error


def resize(library: Any, image: Any, mode: Mode, size: tuple[int, int] | None, fit: Fit) -> np.ndarray:
    """An 8-bit pillow image as an array of the given mode and size; `library` is PIL.Image."""
    image = image.convert("L" if mode == "grey" else "RGB")
    if size is None or image.size == size:
        return np.asarray(image)
    box = (0, 0, *image.size) if fit == "stretch" else _central_box(image.size, size)
    return np.asarray(image.resize(size, library.Resampling.BICUBIC, box=box))


def _central_box(given: tuple[int, int], target: tuple[int, int]) -> tuple[float, float, float, float]:
    """The largest central box with the aspect ratio of the target."""
    scale = min(given[0] / target[0], given[1] / target[1])
    width, height = scale * target[0], scale * target[1]
    left, top = (given[0] - width) / 2, (given[1] - height) / 2
    return left, top, left + width, top + height


def _to_eight_bits(library: Any, image: Any) -> Any:
    """Convert to mode L, RGB or CMYK."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return library.fromarray(np.round(np.asarray(image) / 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise ValueError(f"the range of 32-bit pixels (mode {image.mode}) is unknown; save the image with 8 or 16 bits")
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        return library.alpha_composite(library.new("RGBA", rgba.size, (0, 0, 0, 255)), rgba)
    return image


@dataclass(frozen=True)
class Decoded:
    """The readable rows of a table and their images."""

    table: ViewTable
    images: np.ndarray  # (n, height, width, 3) uint8, memory-mapped and read-only
    skipped: tuple[str, ...]  # the error of each unreadable image
    path: Path  # of the array

    @property
    def message(self) -> str:
        """A report on unreadable images; empty if there are none."""
        if not self.skipped:
            return ""
        total, more = len(self.skipped) + len(self.images), len(self.skipped) - SHOWN_ERRORS
        shown = "; ".join(error.rstrip(".") for error in self.skipped[:SHOWN_ERRORS])
        rest = f"; and {more} more" if more > 0 else ""
        return f"{len(self.skipped)} of {total} images were left out: {shown}{rest}."


def decode(
    table: ViewTable,
    size: tuple[int, int],
    *,
    fit: Fit = "stretch",
    folder: Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> Decoded:
    """All images of a table at `size` (width, height), read from the cache if they were decoded before.

    With `strict` the first unreadable image is an error and nothing is written.
    """
    if min(size) < 1 or (threads is not None and threads < 1):
        raise InputError(f"size and threads must be at least 1, but are {size} and {threads}.")
    place = (folder or cache_folder()) / f"images-{_cache_key(table, size, fit)}"
    if not (place / "decoded.json").is_file():
        images = _decode_images(table, size, fit, threads or os.cpu_count() or 1, strict)
        with write_folder(place) as part:
            _write_images(part, images, size, len(table), progress)
    decoded = _open_cache(place, table)
    if strict and decoded.skipped:
        raise InputError(decoded.skipped[0])
    return decoded


def _cache_key(table: ViewTable, size: tuple[int, int], fit: Fit) -> str:
    digest = hashlib.sha256(json.dumps([CACHE_VERSION, *size, fit]).encode())
    for row in range(len(table)):
        digest.update(f"\n{table.source(row)}".encode())
    return digest.hexdigest()[:16]


def _decode_images(
    table: ViewTable, size: tuple[int, int], fit: Fit, threads: int, strict: bool
) -> Iterator[np.ndarray | InputError]:
    """Images in the order of the table, or their errors. pillow decodes without holding the GIL."""

    def decode_task(first: int) -> list[np.ndarray | InputError]:
        return [_image_or_error(table, row, size, fit) for row in range(first, min(first + TASK_IMAGES, len(table)))]

    starts = range(0, len(table), TASK_IMAGES)
    with ThreadPoolExecutor(threads) as pool:
        for batch in range(0, len(starts), 8 * threads):  # bounds the decoded images waiting in memory
            for found in pool.map(decode_task, starts[batch : batch + 8 * threads]):
                for image in found:
                    if strict and isinstance(image, InputError):
                        raise image
                    yield image


def _image_or_error(table: ViewTable, row: int, size: tuple[int, int], fit: Fit) -> np.ndarray | InputError:
    try:
        return table.image(row, mode="rgb", size=size, fit=fit)
    except MissingExtra:
        raise  # no image could be read
    except InputError as error:
        return error


def _write_images(
    folder: Path,
    images: Iterator[np.ndarray | InputError],
    size: tuple[int, int],
    total: int,
    progress: Progress | None,
) -> None:
    kept: list[int] = []
    skipped: list[str] = []
    with open(folder / "images.npy", "wb") as file:
        _write_header(file, total, size)
        for row, image in enumerate(images):
            if isinstance(image, InputError):
                skipped.append(str(image))
            else:
                file.write(image.tobytes())
                kept.append(row)
            if progress is not None:
                progress(row + 1, total)
        if not kept:
            raise InputError(f"None of the {total} images can be read. {skipped[0]}")
        file.seek(0)
        _write_header(file, len(kept), size)
    write_json(folder / "decoded.json", {"rows": kept, "skipped": skipped})


def _write_header(file: Any, count: int, size: tuple[int, int]) -> None:
    """numpy pads headers for a first axis of any length, so the header can be rewritten with another count."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (count, size[1], size[0], 3)}
    np.lib.format.write_array_header_1_0(file, header)


def _open_cache(place: Path, table: ViewTable) -> Decoded:
    about = read_json(place / "decoded.json")
    try:
        images = np.load(place / "images.npy", mmap_mode="r")
        return Decoded(table.only(np.array(about["rows"])), images, tuple(about["skipped"]), place / "images.npy")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{place} cannot be read ({error}). Delete it to decode the images again.") from error


def rgb_bytes(images: np.ndarray) -> np.ndarray:
    """uint8 images as a writable array (b, h, w, 3); grey images (b, h, w) are repeated over the channels."""
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise InputError(
            f"Images must be uint8 (n, height, width, 3) or (n, height, width), but are {images.dtype} of shape "
            f"{images.shape}."
        )
    if images.ndim == 3:
        return np.repeat(images[..., None], 3, axis=3)
    return np.require(images, requirements=["C", "W"])


def pixel_scale(images: np.ndarray, rows: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each RGB channel in 0 … 1, over an even subsample of the rows.

    >>> pixel_scale(np.full((3, 2, 2, 3), 51, np.uint8), np.arange(3))[0]
    (0.2, 0.2, 0.2)
    """
    counts = np.zeros((3, 256), np.int64)
    for row in subsample(rows, SCALE_IMAGES).tolist():  # one at a time, to bound memory
        pixels = rgb_bytes(np.asarray(images[row : row + 1])).reshape(-1, 3)
        counts += np.stack([np.bincount(channel, minlength=256) for channel in pixels.T])
    value, share = np.arange(256) / 255, counts / counts.sum(1, keepdims=True)
    mean = share @ value
    std = np.maximum(np.sqrt(np.maximum(share @ value**2 - mean**2, 0)), MINIMUM_SCALE)
    return tuple(mean.round(6).tolist()), tuple(std.round(6).tolist())
