"""Multi-view tables: a CSV that says which image shows which state from which view.

    path,state,view[,label,group,...]
    images/00000-left.jpg,t00000,left,straight,block000

Two rows are a pair where they show one state from two views. Paths are relative to the table.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.base.errors import InputError, nearest, require

__all__ = ["MultiViewTable"]

NEEDED = ("path", "state", "view")


@dataclass(frozen=True)
class MultiViewTable:
    """The columns of a table as text, row by row; images are read when they are asked for."""

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

    def __len__(self) -> int:
        return len(self.columns["path"])

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise InputError(f"The table has no column '{name}'. {nearest(name, self.columns)}")
        return self.columns[name]

    def pairs(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the states that both views show, in the order of the first view's rows."""
        views = self.column("view")
        for view in (first, second):
            if view not in views:
                raise InputError(f"No row has the view '{view}'. {nearest(view, sorted(set(views.tolist())))}")
        states = self.column("state")
        seen = {state: row for row, state in enumerate(states) if views[row] == second}
        rows = [row for row in np.flatnonzero(views == first) if states[row] in seen]
        if not rows:
            raise InputError(f"The views '{first}' and '{second}' have no state in common.")
        return np.array(rows), np.array([seen[states[row]] for row in rows])

    def images(
        self, rows: np.ndarray, *, mode: Literal["grey", "rgb"] = "rgb", size: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Images of some rows, uint8: (b, height, width) in grey, (b, height, width, 3) in colour.

        `size` is (width, height); without it all images must have one size already.
        """
        library = require("PIL.Image", "vision", "Reading images")
        found = [self._image(library, row, mode, size) for row in rows]
        if len(sizes := {image.shape for image in found}) > 1:
            raise InputError(f"The images have {len(sizes)} different sizes. Give a size that all are brought to.")
        return np.stack(found)

    def _image(self, library: Any, row: int, mode: str, size: tuple[int, int] | None) -> np.ndarray:
        path = self.folder / str(self.columns["path"][row])
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"Row {row} of the table names {path}, which lies outside {self.folder}.")
        try:
            with library.open(path) as file:
                image = file.convert("L" if mode == "grey" else "RGB")
            return np.asarray(image if size is None else image.resize(size))
        except FileNotFoundError as error:
            raise InputError(f"Row {row} of the table names {path}, but there is no such image.") from error
        except (OSError, SyntaxError) as error:  # what pillow raises for broken files
            raise InputError(f"{path} could not be read as an image: {error}") from error

    def _check_unique(self, path: Path) -> None:
        """One image for a state and a view: a second one would leave open which is the pair."""
        seen: dict[tuple[str, str], int] = {}
        for row, key in enumerate(zip(self.columns["state"].tolist(), self.columns["view"].tolist(), strict=True)):
            if key in seen:
                raise InputError(f"{path}: lines {seen[key] + 2} and {row + 2} both show state '{key[0]}' "
                                 f"from view '{key[1]}'.")  # fmt: skip
            seen[key] = row
