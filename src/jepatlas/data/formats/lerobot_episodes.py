"""LeRobot datasets, version 3: a folder with parquet files of numbers and MP4 files of frames.

    meta/info.json                                   features, frames per second, names of the files
    meta/episodes/chunk-000/file-000.parquet         for each episode its length, and where its rows and frames are
    data/chunk-000/file-000.parquet                  one row per time step
    videos/KEY/chunk-000/file-000.mp4                frames of one camera

Columns keep their names. The first camera is also called `pixels`, and `observation.state` also `state`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError, require
from jepatlas.core.files import read_json
from jepatlas.data.episode_arrays import EpisodeArrays
from jepatlas.data.formats.frame_cache import cached_frames, decode_image, fingerprint_of
from jepatlas.data.videos import VideoReader

__all__ = ["is_lerobot", "read_lerobot"]

INFO = Path("meta", "info.json")
OTHER_NAMES = {"observation.state": "state"}


def is_lerobot(folder: Path) -> bool:
    return (folder / INFO).is_file()


def read_lerobot(folder: Path) -> EpisodeArrays:
    """The episodes of a folder, without the package lerobot."""
    info = read_json(folder / INFO)
    version = str(info.get("codebase_version", "")) if isinstance(info, dict) else ""
    if not version.startswith("v3"):
        raise InputError(
            f"{folder} is a LeRobot dataset of version {version or 'unknown'}, but version 3 is read. Convert it with "
            "the script convert_dataset_v21_to_v30 of lerobot."
        )
    rows = _read_parquets(folder, "data/**/*.parquet")
    episodes = _read_parquets(folder, "meta/episodes/**/*.parquet")
    order = np.argsort(episodes["episode_index"], kind="stable")
    episodes = {name: values[order] for name, values in episodes.items()}
    rows = _sorted_rows(rows)
    lengths = np.asarray(episodes["length"], np.int64)
    if lengths.sum() != len(rows["index"]):
        raise InputError(f"The episodes of {folder} have {lengths.sum()} rows, but its data {len(rows['index'])}.")
    arrays: dict[str, np.ndarray] = {}
    cameras = []
    for name, feature in info["features"].items():
        kind = feature["dtype"]
        if kind in ("video", "image"):
            frames = _video_frames if kind == "video" else _image_frames
            key = fingerprint_of(_files(folder, name, kind), name)
            found = frames(folder, info, name, rows, episodes)
            arrays[name] = cached_frames(key, len(rows["index"]), found, f"'{name}' of {folder}")
            cameras.append(name)
        elif kind != "string" and name in rows:
            arrays[name] = _matrix(rows[name], f"'{name}' of {folder}")
    if cameras:
        arrays["pixels"] = arrays[cameras[0]]
    arrays |= {new: arrays[name] for name, new in OTHER_NAMES.items() if name in arrays and new not in arrays}
    return EpisodeArrays(arrays, lengths)


def _files(folder: Path, name: str, kind: str) -> list[Path]:
    found = folder.glob(f"videos/{name}/**/*.*" if kind == "video" else "data/**/*.parquet")
    return [*sorted(found), folder / INFO]


def _read_parquets(folder: Path, pattern: str) -> dict[str, np.ndarray]:
    """Columns of several files, one after the other."""
    arrow = require("pyarrow", "interop", "Reading LeRobot datasets")
    parquet = require("pyarrow.parquet", "interop", "Reading LeRobot datasets")
    files = sorted(folder.glob(pattern))
    if not files:
        raise InputError(f"{folder} has no files {pattern}, so the dataset is incomplete.")
    try:
        tables = [parquet.ParquetFile(file).read() for file in files]
        table = arrow.concat_tables(tables, promote_options="default")
    except (arrow.ArrowInvalid, OSError) as error:
        raise InputError(f"{folder}: {pattern} cannot be read: {error}") from error
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _sorted_rows(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    order = np.lexsort((rows["frame_index"], rows["episode_index"]))
    return {name: values[order] for name, values in rows.items()}


def _matrix(values: np.ndarray, where: str) -> np.ndarray:
    """Numbers, or lists of equally many numbers, as an array."""
    if values.dtype.kind != "O":
        return values
    try:
        return np.stack([np.stack(list(value)) if value.dtype.kind == "O" else value for value in values])
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{where} has rows of different shapes: {error}") from error


def _image_frames(
    folder: Path, info: dict[str, Any], name: str, rows: dict[str, np.ndarray], episodes: dict[str, np.ndarray]
) -> Iterator[np.ndarray]:
    del info, episodes
    for image in rows[name]:
        yield decode_image(image["bytes"], f"'{name}' of {folder}")


def _video_frames(
    folder: Path, info: dict[str, Any], name: str, rows: dict[str, np.ndarray], episodes: dict[str, np.ndarray]
) -> Iterator[np.ndarray]:
    """Frames in the order of the rows. A file holds several episodes, each from its start time."""
    del rows
    reader = VideoReader()
    place = {part: episodes[f"videos/{name}/{part}"] for part in ("chunk_index", "file_index", "from_timestamp")}
    for number, length in enumerate(episodes["length"]):
        written = info["video_path"].format(
            video_key=name, chunk_index=int(place["chunk_index"][number]), file_index=int(place["file_index"][number])
        )
        path = folder / written
        if ".." in Path(written).parts or Path(written).is_absolute():
            raise InputError(f"{folder / INFO} names the file {written}, which lies outside the folder.")
        first = round(float(place["from_timestamp"][number]) * float(info["fps"]))
        for frame in range(first, first + int(length)):
            yield reader.read(path, np.array([frame]))[0]
