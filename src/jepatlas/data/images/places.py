"""Where images lie in a data set's folder. Links in it are the user's own, and are followed wherever they lead.

What a table names is another matter, for a table may come from anyone: the path as it is written must not lead out of
the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from jepatlas.core.errors import InputError

__all__ = ["image_files", "inside"]

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


def inside(folder: Path, written: str) -> Path | None:
    """The file that a table in `folder` names, without any `..`; None where what is written leads out of the folder.

    An absolute path, and one that goes up and comes back, is inside where a part of it is the folder or lies in it.
    """
    path = Path(os.path.normpath(written))  # before links are followed: `..` is what is written before it
    if not path.is_absolute() and path.parts[:1] != ("..",):
        return folder / path
    path, home = Path(os.path.normpath(folder.absolute() / path)), os.path.realpath(folder)
    for part in (path, *path.parents):
        if (real := Path(os.path.realpath(part))).is_relative_to(home):
            return real / path.relative_to(part)
    return None


def image_files(folder: Path) -> list[Path]:
    """All image files in a folder and below, by name, in order."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    found = sorted(path for path in _files(folder) if path.suffix.lower() in SUFFIXES)
    if not found:
        raise InputError(f"{folder} has no images: no file ends with one of {', '.join(SUFFIXES)}.")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Files of each real folder once: under its own name, or else under that of the first link that leads to it."""
    seen: set[str] = set()
    waiting = [folder]
    while waiting:
        links: list[Path] = []
        for start in waiting:
            for place, below, names in os.walk(start):
                if (real := os.path.realpath(place)) in seen:
                    below.clear()
                    continue
                seen.add(real)
                yield from (Path(place, name) for name in names)
                links += [path for name in below if (path := Path(place, name)).is_symlink() and not _is_loop(path)]
        waiting = sorted(links)


def _is_loop(link: Path) -> bool:
    """Whether a link leads to a folder that it lies in itself."""
    return Path(os.path.realpath(link.parent)).is_relative_to(os.path.realpath(link))
