"""Minari datasets: a folder with `data/metadata.json` and `data/main_data.hdf5`, one HDF5 group per episode.

    episode_0/observations  (t + 1, ...), or a group of such arrays
    episode_0/actions       (t, ...)
    episode_0/rewards, terminations, truncations   (t,)
    episode_0/infos/NAME    (t + 1, ...)

Columns are called `observation`, `action`, `reward`, `terminated` and `truncated`; parts of an observation and infos
have their own names. The first reward and the last action are NaN. JPEG-encoded images are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import read_json
from jepatlas.core.parsing import parse_json
from jepatlas.data.episode_arrays import EpisodeArrays
from jepatlas.data.formats.frame_cache import decode_image
from jepatlas.data.formats.npz_episodes import join_episodes, padded
from jepatlas.worlds.gym_registration import world_settings

__all__ = ["is_minari", "read_minari"]

FILE = "main_data.hdf5"


def is_minari(folder: Path) -> bool:
    return any((place / FILE).is_file() for place in (folder, folder / "data"))


def read_minari(folder: Path) -> EpisodeArrays:
    """The episodes of a dataset's folder, without the package minari."""
    h5py = require("h5py", "sim", "Reading Minari datasets")
    data = folder if (folder / FILE).is_file() else folder / "data"
    try:
        with h5py.File(data / FILE, "r") as file:
            names = sorted((name for name in file if name.startswith("episode_")), key=_number)
            episodes = [_episode(h5py, file[name], f"{name} of {data / FILE}") for name in names]
    except (OSError, RuntimeError, KeyError) as error:
        raise InputError(f"{data / FILE} cannot be read: {error}") from error
    found = join_episodes(episodes, str(folder))
    found.about = _about(data)
    return found


def _number(name: str) -> int:
    digits = name.removeprefix("episode_")
    return int(digits) if digits.isdecimal() else 0


def _episode(h5py: Any, group: Any, where: str) -> dict[str, np.ndarray]:
    columns = dict(_columns(h5py, group["observations"], "observation", where))
    rows = len(next(iter(columns.values())))
    for name, actions in _columns(h5py, group["actions"], "action", where):
        if len(actions) != rows - 1:
            raise InputError(f"{where} has {rows} observations and {len(actions)} actions, but must have one less.")
        columns[name] = padded(actions.reshape(len(actions), -1), rows)
    for name, column in (("rewards", "reward"), ("terminations", "terminated"), ("truncations", "truncated")):
        if name in group:
            values = np.asarray(group[name])
            first = np.full((1, *values.shape[1:]), np.nan if values.dtype.kind == "f" else 0, values.dtype)
            columns[column] = np.concatenate([first, values])
    if "infos" in group:
        for name, values in _columns(h5py, group["infos"], "info", where):
            if len(values) == rows and values.dtype.kind in "biuf":
                columns.setdefault(name, values)
    return columns


def _columns(h5py: Any, item: Any, name: str, where: str) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of a space that may be nested; parts are called by their own name."""
    if isinstance(item, h5py.Group):
        for part in item:
            if isinstance(item.get(part, getlink=True), h5py.HardLink):
                yield from _columns(h5py, item[part], part, where)
        return
    if item.dtype.kind == "O":  # images as JPEG, one array of bytes per frame
        yield name, np.stack([decode_image(bytes(np.asarray(data, np.uint8)), where) for data in item])
        return
    yield name, np.asarray(item)


def _about(data: Path) -> dict[str, Any]:
    """What `write_minari` recorded, or the environment that the episodes were recorded in, if it is known."""
    if not (data / "metadata.json").is_file():
        return {}
    metadata = read_json(data / "metadata.json")
    if not isinstance(metadata, dict):
        return {}
    if isinstance(metadata.get("jepatlas"), dict):
        return metadata["jepatlas"]
    spec = metadata.get("env_spec")
    given = parse_json(spec, "The environment of the dataset") if isinstance(spec, str) else None
    if not isinstance(given, dict) or "id" not in given:
        return {}
    world = world_settings(given["id"], given.get("kwargs") or {})
    return {"environment": given["id"]} if world is None else {"world": world}
