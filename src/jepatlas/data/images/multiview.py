"""Multi-view tables of image files: a CSV file, a folder per view, or class folders as in ImageNet.

A CSV table has one row per image:

    path,state,view[,label,group,...]
    images/00000-left.jpg,t00000,left,straight,block000

Paths are relative to the table and must not leave its folder; symbolic links inside the folder are followed. A cell of
white space counts as empty. `state` and `view` are required in every row. `group` is given for all rows or for none.
`label` may be empty, since only probes need it.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.data.images.decoding import read_image
from jepatlas.data.images.view_table import Fit, Mode, ViewTable

__all__ = ["MultiViewTable", "path_inside", "read_imagenet"]

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
REQUIRED = ("path", "state", "view")
NOT_EMPTY = ("state", "view", "group")
FORMAT = f"a multi-view table is a CSV file in UTF-8 with a header line: {', '.join(REQUIRED)} and others"
HEADER_LENGTH = 200  # characters of an unexpected header shown in an error

NumberedRows = list[tuple[int, dict[Any, Any]]]  # (line number, cells)


@dataclass(frozen=True)
class MultiViewTable(ViewTable):
    """A table whose column `path` names image files inside a folder."""

    folder: Path
    columns: Mapping[str, np.ndarray]  # each (rows,), strings

    @classmethod
    def read(cls, path: Path | str) -> MultiViewTable:
        """Read a CSV table, or `views.csv` in a folder. Images are not opened."""
        path = Path(path)
        path = path / "views.csv" if path.is_dir() else path
        if not path.is_file():
            raise InputError(f"Multi-view table not found: {path}.")
        columns, lines = _read_csv(path)
        table = cls(path.parent, columns)
        table._check_unique(f"{path}: lines", lines)
        return table

    @classmethod
    def from_folder(cls, folder: Path | str) -> MultiViewTable:
        """One subfolder per view; files with the same name (without suffix) show the same state.

        A folder that directly contains images is a single view with the folder's name.
        """
        folder = Path(folder)
        paths, states, views = [], [], []
        for path in image_files(folder):
            relative = path.relative_to(folder)
            in_view_folder = len(relative.parts) > 1
            within_view = Path(*relative.parts[1:]) if in_view_folder else relative
            paths.append(relative.as_posix())
            states.append(within_view.with_suffix("").as_posix())
            views.append(relative.parts[0] if in_view_folder else folder.resolve().name)
        table = cls(folder, {"path": np.array(paths), "state": np.array(states), "view": np.array(views)})
        table._check_unique(f"{folder}:", paths)
        return table

    def path(self, row: int) -> Path:
        """The image file of a row; raises InputError if it lies outside the folder of the table."""
        written = str(self.columns["path"][row])
        if not written:
            raise InputError(f"The path of {self._row_name(row)} is empty.")
        path = path_inside(self.folder, written)
        if path is None:
            raise InputError(
                f"The path of {self._row_name(row)} is {self.folder / written}, which lies outside {self.folder}. Move "
                "the image, or a link to it, into that folder."
            )
        return path

    def image(
        self, row: int, *, mode: Mode = "rgb", size: tuple[int, int] | None = None, fit: Fit = "stretch"
    ) -> np.ndarray:
        path = self.path(row)
        try:
            path.stat()
        except FileNotFoundError as error:
            raise InputError(f"The image of {self._row_name(row)} was not found: {path}.") from error
        except OSError as error:
            raise InputError(
                f"The image of {self._row_name(row)} cannot be accessed: {path} ({error.strerror})."
            ) from error
        return read_image(path, mode=mode, size=size, fit=fit)

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

    def _row_name(self, row: int) -> str:
        """Row numbers change in parts of a table; state and view do not."""
        return f"state '{self.columns['state'][row]}' from view '{self.columns['view'][row]}'"

    def _check_unique(self, where: str, names: Sequence[str | int]) -> None:
        """Each state has at most one image per view; otherwise pairs would be ambiguous."""
        first_row: dict[tuple[str, str], int] = {}
        for row, key in enumerate(zip(self.columns["state"].tolist(), self.columns["view"].tolist(), strict=True)):
            if key in first_row:
                raise InputError(
                    f"{where} {names[first_row[key]]} and {names[row]} both show state '{key[0]}' from view '{key[1]}'."
                )
            first_row[key] = row


def read_imagenet(folder: Path | str, split: str = "train") -> MultiViewTable:
    """Images in class folders, as in ImageNet: train/n01440764/n01440764_10026.JPEG.

    The label is the class folder, the state is the file name, and there is one view. Two views of the same images are
    created with two augmentation pipelines.
    """
    folder = Path(folder)
    if not (folder / split).is_dir():
        found = ", ".join(sorted(path.name for path in folder.glob("*/"))) or "no folders"
        raise InputError(f"{folder} has no folder '{split}' with one folder per class; found: {found}.")
    paths = [path.relative_to(folder) for path in image_files(folder / split)]
    for path in paths:
        if len(path.parts) != 3:
            raise InputError(
                f"{folder / path} is not in a class folder. All images of '{split}' must be in class folders; the "
                "script that comes with ImageNet sorts the validation set."
            )
    names = [path.stem for path in paths]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{folder / split}: {len(repeated)} file names are not unique, such as '{min(repeated)}'.")
    columns = {
        "path": [path.as_posix() for path in paths],
        "state": names,
        "view": ["image"] * len(paths),
        "label": [path.parts[1] for path in paths],
        "group": names,
        "split": [split] * len(paths),
    }
    return MultiViewTable(folder, {name: np.array(values) for name, values in columns.items()})


def path_inside(folder: Path, written: str) -> Path | None:
    """The file that a table in `folder` names, or None if the path leads out of the folder.

    Tables may come from untrusted sources, so `..` is resolved in the written path before links are followed. Absolute
    paths and paths that leave and re-enter the folder are accepted if one of their parents lies in the folder.
    """
    path = Path(os.path.normpath(written))
    if not path.is_absolute() and path.parts[:1] != ("..",):
        return folder / path
    path = Path(os.path.normpath(folder.absolute() / path))
    home = os.path.realpath(folder)
    for parent in (path, *path.parents):
        real = Path(os.path.realpath(parent))
        if real.is_relative_to(home):
            return real / path.relative_to(parent)
    return None


def image_files(folder: Path) -> list[Path]:
    """All image files in a folder and its subfolders, sorted by name."""
    if not folder.is_dir():
        raise InputError(f"Folder not found: {folder}.")
    found = sorted(path for path in _walk_files(folder) if path.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"{folder} contains no images (files with the suffixes {', '.join(SUFFIXES)}).")
    return found


def _walk_files(folder: Path) -> Iterator[Path]:
    """Files of each real folder once: under its own name, or under that of the first link to it."""
    seen: set[str] = set()
    waiting = [folder]
    while waiting:
        links: list[Path] = []
        for start in waiting:
            for place, subfolders, names in os.walk(start):
                real = os.path.realpath(place)
                if real in seen:
                    subfolders.clear()
                    continue
                seen.add(real)
                yield from (Path(place, name) for name in names)
                for name in subfolders:
                    path = Path(place, name)
                    if path.is_symlink() and not _is_loop(path):
                        links.append(path)
        waiting = sorted(links)


def _is_loop(link: Path) -> bool:
    """Whether a link leads to a folder that contains it."""
    return Path(os.path.realpath(link.parent)).is_relative_to(os.path.realpath(link))


def _read_csv(path: Path) -> tuple[dict[str, np.ndarray], list[int]]:
    """The columns of a table, each (rows,), and the line number of each row."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:  # Excel writes a byte-order mark
            names, rows = _parse_csv(path, file)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason}), but {FORMAT}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    _check_header(path, names, rows)
    lines = [line for line, _ in rows]
    for line, row in rows:
        if None in row or None in row.values():
            raise InputError(f"{path}: line {line} has another number of cells than the header.")
    columns = {}
    for name in names:
        columns[name] = np.array([row[name] if row[name].strip() else "" for _, row in rows])
    if "group" in columns and not (columns["group"] != "").any():
        del columns["group"]
    for name in NOT_EMPTY:
        if name in columns:
            _check_not_empty(path, name, columns[name], lines)
    return columns, lines


def _parse_csv(path: Path, file: Iterable[str]) -> tuple[list[str], NumberedRows]:
    reader = csv.DictReader(_lines_without_nul(path, file))
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(
            f"{path}: the row that starts in line {reader.line_num + 1} cannot be parsed ({error}), but {FORMAT}. Look "
            "for an unclosed quotation mark."
        ) from error
    return list(reader.fieldnames or []), rows


def _lines_without_nul(path: Path, file: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise InputError(f"{path}: line {number} has a NUL byte, but {FORMAT}.")
        yield line


def _check_header(path: Path, names: list[str], rows: NumberedRows) -> None:
    if not names:
        raise InputError(f"{path} {'starts with an empty line' if rows else 'is empty'}, but {FORMAT}.")
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        separator = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
        hint = "" if separator is None else f" Separate cells by commas instead of {separator!r}."
        raise InputError(
            f"{path}: columns {', '.join(REQUIRED)} are required, but {', '.join(missing)} is missing. Found: "
            f"{', '.join(names)[:HEADER_LENGTH]}.{hint}"
        )
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{path} has the column '{name}' {count} times. Rename or remove the others.")
    if not rows:
        raise InputError(f"{path} has no rows.")


def _check_not_empty(path: Path, name: str, cells: np.ndarray, lines: list[int]) -> None:
    empty = np.flatnonzero(cells == "")
    if len(empty):
        advice = "Fill the column in all rows or in none." if name == "group" else "Fill it in every row."
        raise InputError(
            f"{path}: the column '{name}' is empty in {len(empty)} of {len(cells)} rows; the first is row {empty[0]}, "
            f"line {lines[empty[0]]}. {advice}"
        )
