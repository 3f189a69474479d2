"""smallNORB: 50 toys of 5 categories, seen by two cameras from 9 elevations and 18 azimuths under 6 lights.

Its three binary files, -dat, -cat and -info, are read as they are published. As in "Social-JEPA: Emergent Geometric
Isomorphism in Independently Trained World Models" a state is an instance at one elevation and lighting, and its views
are the azimuths (the published pair is 0° and 160°); or the two cameras are the views. The official split is by
instance: 4, 6, 7, 8 and 9 of each category are for training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.data.images.norb_matrix import BYTES, INTEGERS, read_matrix
from jepatlas.data.images.pixels import Fit, Mode, resized
from jepatlas.data.images.table import ViewTable

__all__ = ["SmallNORB"]

CATEGORIES = ("animal", "human", "airplane", "truck", "car")
SPLITS = ("training", "testing")
CAMERAS = ("left", "right")
Views = Literal["azimuth", "camera"]


@dataclass(frozen=True)
class SmallNORB(ViewTable):
    """Rows are single images: of every stereo pair the left one, then the right one."""

    columns: Mapping[str, np.ndarray]
    stored: tuple[np.ndarray, ...]  # of each part, (images, height, width), memory-mapped where it is not gzipped
    places: np.ndarray  # (rows,): the image of each row, counted through all parts
    files: tuple[Path, ...]

    @classmethod
    def read(cls, folder: Path | str, split: str | None = None, *, views: Views = "azimuth") -> SmallNORB:
        """Read "training", "testing" or both; pixels stay on disk until they are asked for."""
        if split not in (None, *SPLITS):
            raise InputError(f"smallNORB has the splits {' and '.join(SPLITS)}, but '{split}' was asked for.")
        parts = [_Part.read(Path(folder), name) for name in (SPLITS if split is None else (split,))]
        columns = [part.columns(views) for part in parts]
        joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
        stored = tuple(part.images for part in parts)
        return cls(joined, stored, np.arange(len(joined["state"])), tuple(part.file for part in parts))

    def only(self, rows: np.ndarray) -> SmallNORB:
        return replace(super().only(rows), places=self.places[rows])

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        part, place = self._where(row)
        grey = np.asarray(self.stored[part][place])
        if size is None:
            return grey if mode == "grey" else np.repeat(grey[..., None], 3, axis=2)
        library = require("PIL.Image", "vision", "Resizing images")
        return resized(library, library.fromarray(grey), mode, size, fit)

    def source(self, row: int) -> str:
        part, place = self._where(row)
        about = self.files[part].stat()
        return f"{self.files[part].resolve()}/{place}/{about.st_size}/{about.st_mtime_ns}"

    def _where(self, row: int) -> tuple[int, int]:
        """The part of a row's image, and its place there."""
        place, part = int(self.places[row]), 0
        while place >= len(self.stored[part]):
            place, part = place - len(self.stored[part]), part + 1
        return part, place


@dataclass(frozen=True)
class _Part:
    """The three files of one split."""

    split: str
    file: Path
    images: np.ndarray  # (2 n, height, width)
    category: np.ndarray  # (n,)
    info: np.ndarray  # (n, 4): instance, elevation, azimuth and lighting, as the files number them

    @classmethod
    def read(cls, folder: Path, split: str) -> _Part:
        file, category_file, info_file = (_file(folder, split, kind) for kind in ("dat", "cat", "info"))
        pixels, category = read_matrix(file, BYTES), read_matrix(category_file, INTEGERS)
        info = read_matrix(info_file, INTEGERS)
        if pixels.ndim != 4 or pixels.shape[1] != 2:
            raise InputError(f"{file} holds {pixels.shape}, but smallNORB's images are (pairs, 2, height, width).")
        if category.shape != (len(pixels),) or info.shape != (len(pixels), 4):
            raise InputError(
                f"{file} has {len(pixels)} stereo pairs, but {category_file.name} has the shape {category.shape} and "
                f"{info_file.name} {info.shape}. Are they of one download?"
            )
        if (wrong := np.flatnonzero((category < 0) | (category >= len(CATEGORIES)))).size:
            raise InputError(
                f"{category_file}: pair {wrong[0]} has category {category[wrong[0]]}, but there are 0 to 4."
            )
        return cls(split, file, pixels.reshape(-1, *pixels.shape[2:]), category, info)

    def columns(self, views: Views) -> dict[str, np.ndarray]:
        """For every image. The files hold azimuths in tens of degrees, and elevations as steps of 5° from 30°."""
        instance, elevation, azimuth, lighting = np.repeat(self.info, 2, axis=0).T
        category = np.array(CATEGORIES)[np.repeat(self.category, 2)]
        camera = np.tile(np.array(CAMERAS), len(self.info))
        group = _joined(category, instance)
        about = {"elevation": 30 + 5 * elevation, "azimuth": 10 * azimuth, "lighting": lighting}
        degree = {name: values.astype(str) for name, values in about.items()}
        view, other = (degree["azimuth"], camera) if views == "azimuth" else (camera, degree["azimuth"])
        state = _joined(group, degree["elevation"], degree["lighting"], other)
        split = np.full(len(state), self.split)
        return {
            "state": state,
            "view": view,
            "label": category,
            "group": group,
            "instance": instance.astype(str),
            **degree,
            "camera": camera,
            "split": split,
        }


def _file(folder: Path, split: str, kind: str) -> Path:
    """The file of a kind, under its published name or a shorter one that ends alike."""
    for ending in (f"{split}-{kind}.mat", f"{split}-{kind}.mat.gz"):
        if found := sorted(folder.glob(f"*{ending}")):
            return found[0]
    raise InputError(
        f"{folder} has no file that ends with {split}-{kind}.mat or {split}-{kind}.mat.gz, as smallNORB's have."
    )


def _joined(*parts: np.ndarray) -> np.ndarray:
    return np.array(["-".join(map(str, row)) for row in zip(*(part.tolist() for part in parts), strict=True)])
