"""Images in IDX files, the format of MNIST and Fashion-MNIST.

    train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte

Each may be gzipped. A file is a header of big-endian 32-bit integers, then bytes:

    magic number 0x0000080N for N axes of bytes, lengths of the axes, data
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.data.images.decoding import resize
from jepatlas.data.images.view_table import Fit, Mode, ViewTable

__all__ = ["IDXImages", "fashion_mnist_folder", "has_idx_files"]

FASHION_MNIST = "JEPATLAS_FASHION_MNIST"
DEBIAN = Path("/usr/share/datasets/fashion-mnist")  # where the Debian package dataset-fashion-mnist puts it
SPLITS = {"train": "train", "t10k": "test"}
MAGIC = 0x0800


@dataclass(frozen=True)
class IDXImages(ViewTable):
    """Rows are the training images, then the test images, whose column `split` is `test`."""

    columns: Mapping[str, np.ndarray]
    stored: np.ndarray  # (all images, height, width), uint8
    places: np.ndarray  # (rows,): index of the image of each row
    folder: Path

    @classmethod
    def read(cls, folder: Path | str) -> IDXImages:
        folder = Path(folder)
        images, columns = [], []
        for prefix, split in SPLITS.items():
            file, labels = (_find(folder, f"{prefix}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
            if file is None:
                continue
            pixels = read_idx(file, axes=3)
            numbers = np.full(len(pixels), "") if labels is None else read_idx(labels, axes=1).astype(str)
            if len(numbers) != len(pixels):
                raise InputError(f"{file} has {len(pixels)} images, but {labels} has {len(numbers)} labels.")
            images.append(pixels)
            names = [f"{split}-{number:05d}" for number in range(len(pixels))]
            columns.append({"state": np.array(names), "label": numbers, "split": np.full(len(pixels), split)})
        if not images:
            raise InputError(f"{folder} has no IDX files such as train-images-idx3-ubyte.gz.")
        if len({pixels.shape[1:] for pixels in images}) > 1:
            raise InputError(f"The training and test images in {folder} differ in size.")
        joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
        joined["view"] = np.full(len(joined["state"]), "image")
        return cls(joined, np.concatenate(images), np.arange(len(joined["state"])), folder)

    def only(self, rows: np.ndarray) -> IDXImages:
        return replace(super().only(rows), places=self.places[rows])

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        grey = self.stored[self.places[row]]
        if size is not None:
            library = require("PIL.Image", "vision", "Resizing images")
            return resize(library, library.fromarray(grey), mode, size, fit)
        return grey if mode == "grey" else np.repeat(grey[..., None], 3, axis=2)

    def source(self, row: int) -> str:
        return f"{self.folder.resolve()}/{self.places[row]}/{self.stored.shape}"


def fashion_mnist_folder(folder: Path | str | None = None) -> Path:
    """The given folder, or that of the environment variable JEPATLAS_FASHION_MNIST, or where Debian puts it."""
    place = Path(folder or os.environ.get(FASHION_MNIST) or DEBIAN)
    if not has_idx_files(place):
        raise InputError(
            f"{place} has no Fashion-MNIST images. On Debian: apt install dataset-fashion-mnist. Elsewhere, name the "
            f"folder of its IDX files in the environment variable {FASHION_MNIST}."
        )
    return place


def has_idx_files(folder: Path) -> bool:
    return any(_find(folder, f"{prefix}-images-idx3-ubyte") for prefix in SPLITS)


def _find(folder: Path, name: str) -> Path | None:
    return next((file for file in (folder / f"{name}.gz", folder / name) if file.is_file()), None)


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The bytes of an IDX file with this number of axes."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            data = file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}. The download may be incomplete.") from error
    length = 4 + 4 * axes
    if len(data) < length or int.from_bytes(data[:4], "big") != MAGIC + axes:
        raise InputError(f"{path} is not an IDX file of bytes with {axes} axes.")
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", count=axes, offset=4))
    expected = length + int(np.prod(shape, dtype=np.int64))
    if len(data) != expected or min(shape) < 1:
        raise InputError(f"{path} has {len(data)} bytes, but its shape {shape} needs {expected}. Is it cut short?")
    return np.frombuffer(data, np.uint8, offset=length).reshape(shape)
