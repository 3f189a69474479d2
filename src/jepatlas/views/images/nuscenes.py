"""nuScenes: the cameras of a car that takes all its pictures at one moment, read from its JSON tables.

A state is a sample (a moment), a view is a camera, a group is a scene. Only key frames are synchronised, so only they
are taken. Every reference is followed before anything is trained: a token or file that is missing is an error that
says which table names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.base.errors import InputError, nearest
from jepatlas.base.files import read_json
from jepatlas.views.images.multiview import MultiViewTable

__all__ = ["read_nuscenes"]

Record = dict[str, Any]
COLUMNS = ("path", "state", "view", "group", "timestamp", "location")


def read_nuscenes(folder: Path | str, version: str | None = None, *, cameras: Sequence[str] = ()) -> MultiViewTable:
    """The key frames of some cameras (all where none are named), in the order of time within their scenes.

    `version` names the folder of tables, such as v1.0-mini; it may be left out where there is only one.
    """
    folder = Path(folder)
    tables = _Tables(_version_folder(folder, version))
    known = sorted({row["channel"] for row in tables["sensor"].values() if row.get("modality") == "camera"})
    for camera in cameras:
        if camera not in known:
            raise InputError(f"{tables.folder / 'sensor.json'} has no camera '{camera}'. {nearest(camera, known)}")
    rows = sorted(_rows(tables, set(cameras or known)), key=lambda row: (row[3], row[4], row[1], row[2]))
    if not rows:
        raise InputError(f"{tables.folder / 'sample_data.json'} has no key frame of a camera.")
    _check_files(folder, tables, [(row[0], row[-1]) for row in rows])
    return MultiViewTable(folder, {name: np.array([str(row[n]) for row in rows]) for n, name in enumerate(COLUMNS)})


class _Tables:
    """The tables that were asked for, each as records by token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, dict[str, Record]] = {}

    def __getitem__(self, name: str) -> dict[str, Record]:
        if name not in self._read:
            path = self.folder / f"{name}.json"
            records = read_json(path)
            if not isinstance(records, list) or any(not isinstance(row, dict) or "token" not in row for row in records):
                raise InputError(f"{path} is no table of nuScenes: that is a list of records, each with a token.")
            self._read[name] = {row["token"]: row for row in records}
        return self._read[name]

    def follow(self, name: str, record: Record, to: str) -> Record:
        """The record of table `to` that a record of table `name` refers to."""
        token = self.value(name, record, f"{to}_token")
        if token not in self[to]:
            raise InputError(
                f"{self.folder / name}.json: token '{record['token']}' refers to {to}_token '{token}', which "
                f"{to}.json does not have. Are all tables of one version?"
            )
        return self[to][token]

    def value(self, name: str, record: Record, field: str) -> Any:
        if field not in record:
            raise InputError(f"{self.folder / name}.json: token '{record['token']}' has no {field}.")
        return record[field]


def _rows(tables: _Tables, cameras: set[str]) -> Iterator[tuple[Any, ...]]:
    """Columns of each key frame, and its token."""
    for record in tables["sample_data"].values():
        if not tables.value("sample_data", record, "is_key_frame"):
            continue
        calibrated = tables.follow("sample_data", record, "calibrated_sensor")
        camera = tables.value("sensor", tables.follow("calibrated_sensor", calibrated, "sensor"), "channel")
        if camera not in cameras:
            continue
        sample = tables.follow("sample_data", record, "sample")
        scene = tables.follow("sample", sample, "scene")
        location = tables.value("log", tables.follow("scene", scene, "log"), "location")
        yield (tables.value("sample_data", record, "filename"), sample["token"], camera,
               tables.value("scene", scene, "name"), tables.value("sample", sample, "timestamp"), location,
               record["token"])  # fmt: skip


def _check_files(folder: Path, tables: _Tables, named: list[tuple[str, str]]) -> None:
    missing = [(path, token) for path, token in named if not (folder / path).is_file()]
    if missing:
        path, token = missing[0]
        raise InputError(
            f"{tables.folder / 'sample_data.json'}: token '{token}' names {path}, but {folder} has no such file; "
            f"{len(missing)} of {len(named)} images are missing. Unpack all parts of this version there, "
            "or read only the cameras whose images are (--images.cameras)."
        )


def _version_folder(folder: Path, version: str | None) -> Path:
    if version is not None:
        if not (folder / version).is_dir():
            raise InputError(f"There is no folder {folder / version} with nuScenes tables.")
        return folder / version
    found = sorted(path.parent for path in folder.glob("*/sample_data.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        seen = f"several: {names}. Choose one as version" if found else "none. It lies beside the folder samples"
        raise InputError(f"{folder} should have one folder of nuScenes tables, but there is {seen}.")
    return found[0]
