"""Multi-view tables in files: a CSV that says which image shows which state from which view, or plain folders.

    path,state,view[,label,group,...]
    images/00000-left.jpg,t00000,left,straight,block000

Paths are relative to the table, and stay in its folder; links that lie there are followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.data.images.pixels import Fit, Mode, read_pixels
from jepatlas.data.images.places import image_files, inside
from jepatlas.data.images.table import ViewTable
from jepatlas.data.images.table_file import read_columns

__all__ = ["MultiViewTable"]


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
        columns, lines = read_columns(path)
        table = cls(path.parent, columns)
        table._check_unique(f"{path}: lines", lines)
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
        paths = [Path(*part).as_posix() for part in parts]
        columns = {"path": paths, "state": states, "view": views}
        table = cls(folder, {name: np.array(values) for name, values in columns.items()})
        table._check_unique(f"{folder}:", paths)
        return table

    def path(self, row: int) -> Path:
        """The file of a row; one that the table places outside its folder is refused."""
        written = str(self.columns["path"][row])
        if not written:
            raise InputError(f"Of {self._shown(row)} the table names no image: its path is empty.")
        path = inside(self.folder, written)
        if path is None:
            raise InputError(
                f"Of {self._shown(row)} the table names {self.folder / written}, which lies outside {self.folder}. Put "
                "the image, or a link to it, into that folder, and name it there."
            )
        return path

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        path = self.path(row)
        try:
            path.stat()
        except FileNotFoundError as error:
            raise InputError(f"Of {self._shown(row)} the table names {path}, but there is no such image.") from error
        except OSError as error:
            raise InputError(
                f"Of {self._shown(row)} the table names {path}, but it is out of reach: {error.strerror}."
            ) from error
        return read_pixels(path, mode=mode, size=size, fit=fit)

    def source(self, row: int) -> str:
        try:
            path = self.path(row)
        except InputError:
            return f"{os.path.realpath(self.folder)}/{self.columns['path'][row]}/refused"
        real = os.path.realpath(path)
        try:
            about = path.stat()
        except OSError:
            return f"{real}/absent"
        return f"{real}/{about.st_size}/{about.st_mtime_ns}"

    def _shown(self, row: int) -> str:
        """A row as its author knows it: numbers change where a part of a table is taken."""
        return f"state '{self.columns['state'][row]}' from view '{self.columns['view'][row]}'"

    def _check_unique(self, where: str, names: Sequence[str | int]) -> None:
        """One image for a state and a view: a second one would leave open which is the pair."""
        seen: dict[tuple[str, str], int] = {}
        for row, key in enumerate(zip(self.columns["state"].tolist(), self.columns["view"].tolist(), strict=True)):
            if key in seen:
                both = f"{names[seen[key]]} and {names[row]}"
                raise InputError(f"{where} {both} both show state '{key[0]}' from view '{key[1]}'.")
            seen[key] = row
