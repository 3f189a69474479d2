"""What can be encoded: images, videos, texts and episodes, as numbered items with columns.

a folder of images           one item per image; subfolders are labels
views.csv, or its folder     one item per image of one view, with the table's states, groups and labels
a folder of videos           frames or clips, with pairs at a stride, times and groups
texts.txt                    one item per line
episodes                     frames of the column `pixels`, with pairs, true states and groups
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.sealing import sha256_of_bytes, sha256_of_json
from jepatlas.data import open_episodes
from jepatlas.data.images import IDXImages, MultiViewTable, ViewTable, fashion_mnist_folder, has_idx_files
from jepatlas.data.images.multiview import SUFFIXES as IMAGE_SUFFIXES
from jepatlas.data.images.multiview import image_files
from jepatlas.data.videos import SUFFIXES as VIDEO_SUFFIXES
from jepatlas.data.videos import video_files
from jepatlas.workflows.encode.frame_sources import episode_source, video_source
from jepatlas.workflows.encode.source import Source, SourceOptions

__all__ = ["image_source", "open_source"]

FASHION = "fashion-mnist"


def open_source(path: str, options: SourceOptions, reads: str, frames: int = 1) -> Source:
    """The source at `path` for a model that reads "images", "clips" of this many frames, or "texts"."""
    place = Path(path)
    table = _table_at(place)
    if table is not None:
        if reads != "images":
            raise InputError(f"{path} holds images, but the model encodes {reads}.")
        return image_source(table, options)
    if place.suffix == ".txt":
        return _texts(place, options, reads)
    if videos := _videos_of(place):
        return video_source(place if place.is_dir() else place.parent, videos, options, reads, frames)
    return episode_source(place, open_episodes(place), options, reads, frames)


def _table_at(place: Path) -> ViewTable | None:
    """The table of images at a path; None if there is another kind of source."""
    if str(place) == FASHION and not place.exists():
        return IDXImages.read(fashion_mnist_folder())
    if not place.exists():
        raise InputError(f"There is no file or folder {place}.")
    if place.suffix == ".csv" or (place / "views.csv").is_file():
        return MultiViewTable.read(place)
    if has_idx_files(place):
        return IDXImages.read(place)
    has_images = place.is_dir() and any(one.suffix.lower() in IMAGE_SUFFIXES for one in place.rglob("*"))
    return folder_table(place) if has_images else None


def folder_table(folder: Path) -> MultiViewTable:
    """Images of a folder with their relative paths as ids; the first subfolder, if all images have one, is a label."""
    paths = [path.relative_to(folder) for path in image_files(folder)]
    names = [path.with_suffix("").as_posix() for path in paths]
    if len(set(names)) < len(names):
        names = [path.as_posix() for path in paths]
    columns = {
        "path": np.array([path.as_posix() for path in paths]),
        "state": np.array(names),
        "view": np.full(len(paths), "image"),
    }
    if all(len(path.parts) > 1 for path in paths):
        columns["label"] = np.array([path.parts[0] for path in paths])
    return MultiViewTable(folder, columns)


def image_source(table: ViewTable, options: SourceOptions) -> Source:
    """One view of a table."""
    if options.stride is not None:
        raise InputError("stride is for videos and episodes, but the source is a set of images.")
    if options.view is None and len(table.views) > 1:
        raise InputError(f"The table has the views {', '.join(table.views)}. Choose one with --view.")
    rows = np.arange(len(table)) if options.view is None else table.rows_of_view(options.view)
    chosen = table.only(_subsample(rows, options.most))
    columns = {"ids": chosen.column("state")}
    for name, column in (("groups", "group"), ("labels", "label")):
        if column in chosen.columns and (chosen.column(column) != "").all():
            columns[name] = chosen.column(column)
    held = _held(chosen)
    if held is not None:
        columns["held"] = held

    def read(first: int, end: int) -> list[np.ndarray | InputError]:
        return [_image_or_error(chosen, row) for row in range(first, end)]

    listing = "\n".join(chosen.source(row) for row in range(len(chosen)))
    return Source("images", len(chosen), read, columns, sha256_of_bytes(listing.encode()))


def _image_or_error(table: ViewTable, row: int) -> np.ndarray | InputError:
    try:
        return table.image(row)
    except InputError as error:
        return error


def _held(table: ViewTable) -> np.ndarray | None:
    """Which rows a published split holds out; None if the table has no split, or only one part of it."""
    if "split" not in table.columns:
        return None
    held = ~np.char.startswith(table.column("split"), "train")
    return held if held.any() and not held.all() else None


def _subsample(rows: np.ndarray, most: int | None) -> np.ndarray:
    if most is None or most >= len(rows):
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def _texts(path: Path, options: SourceOptions, reads: str) -> Source:
    if reads != "texts":
        raise InputError(f"{path} holds texts, but the model encodes {reads}.")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file in UTF-8: {error}.") from error
    numbers = _subsample(np.array([i for i, line in enumerate(lines) if line.strip()], int), options.most)
    if not len(numbers):
        raise InputError(f"{path} holds no text.")
    ids = np.array([f"line{number + 1:07d}" for number in numbers])
    texts = [lines[number] for number in numbers]
    listing = sha256_of_json([path.name, texts])
    return Source("texts", len(texts), lambda first, end: texts[first:end], {"ids": ids}, listing)


def _videos_of(place: Path) -> list[Path]:
    """Videos of a folder, or a video file; none in a LeRobot folder, whose videos belong to its episodes."""
    if place.is_file() or (place / "meta" / "info.json").is_file():
        return [place] if place.suffix.lower() in VIDEO_SUFFIXES else []
    return video_files(place)
