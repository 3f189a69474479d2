"""A world of objects as a folder: a multi-view table (views.csv) and one PNG per state and camera.

    path,state,view,label,group,instance,azimuth,elevation,lighting
    images/camera160/car03-a90-e40-noon.png,car03-a90-e40-noon,camera160,car,car03,03,90,40,noon

Each config is rendered once and cached in the user's cache folder. `rendered.json`, beside the table, records the
config, the library versions, and the size of the images in bytes.
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
from jepatlas.core.locks import writer_lock
from jepatlas.core.sealing import sha256_of_file, sha256_of_json
from jepatlas.worlds.mujoco_canvas import load_mujoco
from jepatlas.worlds.objects.rendered_objects import RenderedObjects, state_columns

__all__ = ["Progress", "render"]

PROCEDURE = 1  # raise when images change, so that folders rendered before are not used
BATCH = 256  # images rendered before they are written

Progress = Callable[[int, int], None]
"""Called with the number of finished images and their total."""


def render(config: RenderedObjects, folder: Path | str | None = None, progress: Progress | None = None) -> Path:
    """The folder of a config, rendered now unless it exists; it is written completely or not at all.

    Without `folder` it is in the user's cache folder, under a name derived from the config.
    """
    if folder is not None:
        _check_replaceable(Path(folder), config)
        return _render_once(config, Path(folder), progress)
    place = cache_folder() / f"objects-{sha256_of_json(_identity(config))[:16]}"
    with writer_lock(place, wait=True):
        return _render_once(config, place, progress)


def _identity(config: RenderedObjects) -> dict[str, Any]:
    return {"procedure": PROCEDURE, "config": to_plain(config)}


def _render_once(config: RenderedObjects, place: Path, progress: Progress | None) -> Path:
    if _is_complete(place, config):
        return place
    with write_folder(place) as beside, config:
        _write_images(beside, config, progress)
        _write_table(beside / "views.csv", config)
        drawn_with = {"mujoco": load_mujoco("The world 'objects'").__version__, "numpy": np.__version__}
        contents = {"table": sha256_of_file(beside / "views.csv"), "bytes": _image_bytes(beside)}
        write_json(beside / "rendered.json", {**_identity(config), "drawn_with": drawn_with, **contents})
    return place


def _check_replaceable(place: Path, config: RenderedObjects) -> None:
    """Raise InputError if an existing folder holds anything but this config, so that no data is lost."""
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return
    about = _read_about(place)
    if not about:
        raise InputError(f"{place} exists and is not a folder of rendered objects. Name another one, or delete it.")
    if not _identity(config).items() <= about.items():
        raise InputError(f"{place} holds objects rendered from another config. Name another folder, or delete it.")


def _is_complete(place: Path, config: RenderedObjects) -> bool:
    about, table = _read_about(place), place / "views.csv"
    if not _identity(config).items() <= about.items() or not table.is_file():
        return False
    return sha256_of_file(table) == about.get("table") and _image_bytes(place) == about.get("bytes")


def _read_about(place: Path) -> dict[str, Any]:
    """The contents of `rendered.json`; empty if the file is missing or broken."""
    try:
        about = read_json(place / "rendered.json")
    except InputError:
        return {}
    return about if isinstance(about, dict) else {}


def _image_bytes(place: Path) -> int:
    """Total size of all images, which shows missing and truncated ones."""
    return sum(path.stat().st_size for path in (place / "images").glob("*/*.png"))


def _write_images(folder: Path, config: RenderedObjects, progress: Progress | None) -> None:
    states = config.states()
    names = state_columns(states)["state"]
    done, total = 0, len(states) * config.cameras
    for camera, view in enumerate(config.views):
        (folder / "images" / view).mkdir(parents=True)
        for first in range(0, len(states), BATCH):
            images = config.view_frames(states[first : first + BATCH], camera)
            for name, image in zip(names[first : first + BATCH], images, strict=True):
                (folder / "images" / view / f"{name}.png").write_bytes(_png(image))
            done += len(images)
            if progress is not None:
                progress(done, total)


def _png(picture: np.ndarray) -> bytes:
    """With light compression: pillow's default level takes twice the time for 10% fewer bytes."""
    image, file = require("PIL.Image", "vision", "Writing pictures"), io.BytesIO()
    image.fromarray(picture).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _write_table(path: Path, config: RenderedObjects) -> None:
    columns = state_columns(config.states())
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["path", "state", "view", *list(columns)[1:]])
        for name, *others in zip(*columns.values(), strict=True):
            for view in config.views:
                table.writerow([f"images/{view}/{name}.png", name, view, *others])
