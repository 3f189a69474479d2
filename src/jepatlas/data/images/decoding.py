"""A table's images decoded once, in parallel, into one memory-mapped array of bytes (n, height, width, 3).

The array lies in a cache folder under a name that follows from what it was made from: every file's path, size and time
of change, the size asked for, and how it is reached. It is written whole or not at all. An image that cannot be read
is left out, counted and named; it does not cost the run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, MissingExtra
from jepatlas.core.files import cache_folder, read_json, write_folder, write_json
from jepatlas.data.images.pixels import Fit
from jepatlas.data.images.table import ViewTable

__all__ = ["Decoded", "decode"]

PROCEDURE = 3  # to be raised whenever decoding changes: arrays made before are then left alone
NAMED = 5  # how many of the images that were left out a message names
TASK = 16  # images that a thread decodes in one go

Progress = Callable[[int, int], None]
"""Told how many images are done, and of how many."""
Found = Iterator[np.ndarray | InputError]


@dataclass(frozen=True)
class Decoded:
    """The rows of a table whose images could be read, and these images, row by row."""

    table: ViewTable
    images: np.ndarray  # (n, height, width, 3), bytes, memory-mapped and read-only
    skipped: tuple[str, ...]  # what was wrong with each of the images that were left out
    path: Path  # of the array

    @property
    def message(self) -> str:
        """What to tell about images that were left out; empty where none were."""
        if not self.skipped:
            return ""
        total, more = len(self.skipped) + len(self.images), len(self.skipped) - NAMED
        named = "; ".join(one.rstrip(".") for one in self.skipped[:NAMED])
        return (
            f"{len(self.skipped)} of {total} images were left out: {named}{f'; and {more} more' if more > 0 else ''}."
        )


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
    """All images of a table at `size` (width, height), from the cache folder where they were decoded before.

    With `strict` the first image that cannot be read is an error, and nothing is written.
    """
    if min(size) < 1 or (threads is not None and threads < 1):
        raise InputError(f"A size and a number of threads are at least 1, but {size} and {threads} were given.")
    place = (folder or cache_folder()) / f"images-{_key(table, size, fit)}"
    if not (place / "decoded.json").is_file():
        with write_folder(place) as beside:
            _fill(
                beside, _decoded(table, size, fit, threads or os.cpu_count() or 1, strict), size, len(table), progress
            )
    decoded = _opened(place, table)
    if strict and decoded.skipped:
        raise InputError(decoded.skipped[0])
    return decoded


def _key(table: ViewTable, size: tuple[int, int], fit: Fit) -> str:
    text = hashlib.sha256(json.dumps([PROCEDURE, *size, fit]).encode())
    for row in range(len(table)):
        text.update(f"\n{table.source(row)}".encode())
    return text.hexdigest()[:16]


def _decoded(table: ViewTable, size: tuple[int, int], fit: Fit, threads: int, strict: bool) -> Found:
    """Images in the order of the table, or what was wrong with them. pillow decodes outside of Python's lock."""

    def some(first: int) -> list[np.ndarray | InputError]:
        return [_image_or_error(table, row, size, fit) for row in range(first, min(first + TASK, len(table)))]

    starts = range(0, len(table), TASK)
    with ThreadPoolExecutor(threads) as pool:
        for ahead in range(0, len(starts), 8 * threads):  # not all at once: results wait in memory
            for found in pool.map(some, starts[ahead : ahead + 8 * threads]):
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


def _fill(folder: Path, images: Found, size: tuple[int, int], total: int, progress: Progress | None) -> None:
    kept: list[int] = []
    skipped: list[str] = []
    with open(folder / "images.npy", "wb") as file:
        _write_head(file, total, size)
        for row, image in enumerate(images):
            if isinstance(image, InputError):
                skipped.append(str(image))
            else:
                file.write(image.tobytes())
                kept.append(row)
            if progress is not None:
                progress(row + 1, total)
        if not kept:
            raise InputError(f"None of the {total} images could be read. {skipped[0]}")
        file.seek(0)
        _write_head(file, len(kept), size)
    write_json(folder / "decoded.json", {"rows": kept, "skipped": skipped})


def _write_head(file: Any, count: int, size: tuple[int, int]) -> None:
    """numpy leaves room for a first axis of any length, so that the head is as long with another count."""
    about = {"descr": "|u1", "fortran_order": False, "shape": (count, size[1], size[0], 3)}
    np.lib.format.write_array_header_1_0(file, about)


def _opened(place: Path, table: ViewTable) -> Decoded:
    about = read_json(place / "decoded.json")
    try:
        images = np.load(place / "images.npy", mmap_mode="r")
        return Decoded(table.only(np.array(about["rows"])), images, tuple(about["skipped"]), place / "images.npy")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{place} could not be read ({error}). Delete it, and it is made anew.") from error
