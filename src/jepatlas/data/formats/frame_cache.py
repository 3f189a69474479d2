"""Decoded frames of episodes, in a memory-mapped array of the cache folder.

Training reads frames in random order, which videos and compressed images do not allow at a useful speed.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import cache_folder, write_folder

__all__ = ["cached_frames", "decode_image", "fingerprint_of"]


def fingerprint_of(paths: Iterable[Path], *more: object) -> str:
    """Hash of the names, sizes and times of files, and of what else the frames depend on."""
    listed = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in sorted(paths)]
    return hashlib.sha256(json.dumps([listed, [str(one) for one in more]]).encode()).hexdigest()[:16]


def cached_frames(key: str, count: int, frames: Iterator[np.ndarray], where: str) -> np.ndarray:
    """`count` frames (height, width, 3) in uint8 as one memory-mapped array; `frames` is read only the first time."""
    place = cache_folder() / f"frames-{key}"
    if not (place / "frames.npy").is_file():
        with write_folder(place) as folder:
            _write(folder / "frames.npy", count, frames, where)
    found = np.load(place / "frames.npy", mmap_mode="r")
    if len(found) != count:
        raise InputError(f"{place} holds {len(found)} frames instead of {count}. Delete it to decode them again.")
    return found


def _write(path: Path, count: int, frames: Iterator[np.ndarray], where: str) -> None:
    stored: Any = None
    written = 0
    for frame in frames:
        if stored is None:
            stored = np.lib.format.open_memmap(path, "w+", np.uint8, (count, *frame.shape))
        if written == count or frame.shape != stored.shape[1:] or frame.dtype != np.uint8:
            raise InputError(f"{where}: frame {written} is {frame.dtype} of shape {frame.shape}, unlike the others.")
        stored[written] = frame
        written += 1
    if stored is None or written < count:
        raise InputError(f"{where} has {written} frames, but {count} are expected. Is the recording complete?")
    stored.flush()


def decode_image(data: bytes, where: str) -> np.ndarray:
    """A compressed image (JPEG, PNG) as (height, width, 3) in uint8."""
    library = require("PIL.Image", "vision", "Reading images of episodes")
    try:
        with library.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, library.DecompressionBombError) as error:
        raise InputError(f"{where}: an image cannot be decoded: {error}") from error
