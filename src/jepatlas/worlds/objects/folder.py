"""A world of objects as a folder: a multi-view table (views.csv) and one PNG for each state and camera.

    path,state,view,label,group,instance,azimuth,elevation,lighting
    images/camera160/car03-a90-e40-noon.png,car03-a90-e40-noon,camera160,car,car03,03,90,40,noon

It is drawn once for a config and kept in the user's cache folder. `rendered.json`, beside the table, says what is in
the folder: the config, what it was drawn with, and how many bytes there are to be.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError, require
from jepatlas.core.files import cache_folder, read_json, write_folder, write_json
from jepatlas.core.sealing import sha256_of_file, sha256_of_json
from jepatlas.worlds.mujoco_canvas import load_mujoco
from jepatlas.worlds.objects.naming import state_columns
from jepatlas.worlds.objects.world import RenderedObjects
from jepatlas.worlds.turns import alone

__all__ = ["Progress", "render"]

PROCEDURE = 1  # to be raised whenever pictures change: folders made before are then left alone
BATCH = 256  # pictures that are drawn, then written

Progress = Callable[[int, int], None]
"""Told how many pictures are done, and of how many."""


def render(config: RenderedObjects, folder: Path | str | None = None, progress: Progress | None = None) -> Path:
    """The folder of a config: as it was drawn before, or drawn now, whole or not at all.

    Without `folder` it lies in the user's cache folder under a name that follows from the config.
    """
    if folder is not None:
        _refuse_other_contents(Path(folder), config)
        return _rendered(config, Path(folder), progress)
    place = cache_folder() / f"objects-{_key(config)}"
    with alone(place):
        return _rendered(config, place, progress)


def _key(config: RenderedObjects) -> str:
    return sha256_of_json(_identity(config))[:16]


def _identity(config: RenderedObjects) -> dict[str, Any]:
    return {"procedure": PROCEDURE, "config": to_plain(config)}


def _rendered(config: RenderedObjects, place: Path, progress: Progress | None) -> Path:
    if _is_whole(place, config):
        return place
    with write_folder(place) as beside, config:
        _write_images(beside, config, progress)
        _write_table(beside / "views.csv", config)
        drawn = {"mujoco": load_mujoco("The world 'objects'").__version__, "numpy": np.__version__}
        contents = {"table": sha256_of_file(beside / "views.csv"), "bytes": _bytes(beside)}
        write_json(beside / "rendered.json", {**_identity(config), "drawn_with": drawn, **contents})
    return place


def _refuse_other_contents(place: Path, config: RenderedObjects) -> None:
    """A folder that was there before is replaced only where it holds this very config: else something would be lost."""
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    if not (about := _about(place)):
        raise InputError(f"{place} exists and is not a folder of rendered objects. Name another one, or delete it.")
    if not _identity(config).items() <= about.items():
        raise InputError(f"{place} holds objects rendered from another config. Name another folder, or delete it.")


def _is_whole(place: Path, config: RenderedObjects) -> bool:
    """Whether all that was drawn is there, as long as it was."""
    about, table = _about(place), place / "views.csv"
    if not _identity(config).items() <= about.items() or not table.is_file():
        return False
    return sha256_of_file(table) == about.get("table") and _bytes(place) == about.get("bytes")


def _about(place: Path) -> dict[str, Any]:
    """What `rendered.json` says; nothing where it is absent or cut."""
    try:
        about = read_json(place / "rendered.json")
    except InputError:
        return {}
    return about if isinstance(about, dict) else {}


def _bytes(place: Path) -> int:
    """Of all pictures together: a picture that is missing or cut short changes it."""
    return sum(path.stat().st_size for path in (place / "images").glob("*/*.png"))


def _write_images(folder: Path, config: RenderedObjects, progress: Progress | None) -> None:
    states = config.states()
    names, done = state_columns(states)["state"], 0
    total = len(states) * config.cameras
    for camera, view in enumerate(config.views):
        (folder / "images" / view).mkdir(parents=True)
        for first in range(0, len(states), BATCH):
            pictures = config.seen(states[first : first + BATCH], camera)
            for name, picture in zip(names[first : first + BATCH], pictures, strict=True):
                (folder / "images" / view / f"{name}.png").write_bytes(_png(picture))
            done += len(pictures)
            if progress is not None:
                progress(done, total)


def _png(picture: np.ndarray) -> bytes:
    """Lightly packed: the level that pillow takes by itself costs twice the time for a tenth less bytes."""
    image, file = require("PIL.Image", "vision", "Writing pictures"), io.BytesIO()
    image.fromarray(picture).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _write_table(path: Path, config: RenderedObjects) -> None:
    columns = state_columns(config.states())
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["path", "state", "view", *list(columns)[1:]])
        for name, *others in zip(*columns.values(), strict=True):
            table.writerows([f"images/{view}/{name}.png", name, view, *others] for view in config.views)
