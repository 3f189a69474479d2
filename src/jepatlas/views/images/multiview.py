"""Multi-view tables in files: a CSV that says which image shows which state from which view, or plain folders.

    path,state,view[,label,group,...]
    images/00000-left.jpg,t00000,left,straight,block000

Paths are relative to the table.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.views.images.pixels import Fit, Mode, read_pixels
from jepatlas.views.images.table import ViewTable

__all__ = ["MultiViewTable", "image_files"]

NEEDED = ("path", "state", "view")
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class MultiViewTable(ViewTable):
    """A table whose column `path` names image files inside a folder."""

    folder: Path
    columns: Mapping[str, np.ndarray]  # each (rows,), text

    @classmethod
    def read(cls, path: Path | str) -> MultiViewTable:
        """Read a table, or the `views.csv` of a folder; nothing but the table is opened."""
        path = Path(path)
        path = path / "views.csv" if path.is_dir() else path
        if not path.is_file():
            raise InputError(f"There is no multi-view table {path}.")
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
        names = list(reader.fieldnames or [])
        if missing := [name for name in NEEDED if name not in names]:
            verb = "is" if len(missing) == 1 else "are"
            raise InputError(f"{path}: a multi-view table needs the columns {', '.join(NEEDED)}, "
                             f"but {', '.join(missing)} {verb} missing. Found: {', '.join(names)}.")  # fmt: skip
        short = [number for number, row in enumerate(rows, start=2) if None in row or None in row.values()]
        if short or not rows:
            where = f"line {short[0]} has not as many cells as the first" if short else "it has no rows"
            raise InputError(f"{path}: {where}.")
        table = cls(path.parent, {name: np.array([row[name] for row in rows]) for name in names})
        table._check_unique(path)
        return table

    @classmethod
    def from_folder(cls, folder: Path | str) -> MultiViewTable:
        """Folders of images, one for each view: files of the same name, but for what follows its dot, are one state.

        A folder that holds images itself is a single view, named as the folder is.
        """
        folder = Path(folder)
        found = image_files(folder)
        parts = [path.relative_to(folder).parts for path in found]
        views = [part[0] if len(part) > 1 else folder.resolve().name for part in parts]
        states = [Path(*part[1:] if len(part) > 1 else part).with_suffix("").as_posix() for part in parts]
        columns = {"path": [Path(*part).as_posix() for part in parts], "state": states, "view": views}
        table = cls(folder, {name: np.array(values) for name, values in columns.items()})
        table._check_unique(folder)
        return table

    def path(self, row: int) -> Path:
        """The file of a row; one outside the table's folder is refused."""
        path = self.folder / str(self.columns["path"][row])
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"Row {row} of the table names {path}, which lies outside {self.folder}.")
        return path

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        path = self.path(row)
        if not path.exists():
            raise InputError(f"Row {row} of the table names {path}, but there is no such image.")
        return read_pixels(path, mode=mode, size=size, fit=fit)

    def source(self, row: int) -> str:
        path = self.folder / str(self.columns["path"][row])
        try:
            about = path.stat()
        except OSError:
            return f"{path.resolve()}/absent"
        return f"{path.resolve()}/{about.st_size}/{about.st_mtime_ns}"

    def _check_unique(self, path: Path) -> None:
        """One image for a state and a view: a second one would leave open which is the pair."""
        seen: dict[tuple[str, str], int] = {}
        for row, key in enumerate(zip(self.columns["state"].tolist(), self.columns["view"].tolist(), strict=True)):
            if key in seen:
                both = (f"lines {seen[key] + 2} and {row + 2}" if path.is_file()
                        else f"{self.columns['path'][seen[key]]} and {self.columns['path'][row]}")  # fmt: skip
                raise InputError(f"{path}: {both} both show state '{key[0]}' from view '{key[1]}'.")
            seen[key] = row


def image_files(folder: Path) -> list[Path]:
    """All image files in a folder and below, by name, in order."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"{folder} has no images: no file ends with one of {', '.join(SUFFIXES)}.")
    return found
