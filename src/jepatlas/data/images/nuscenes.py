"""nuScenes: synchronised cameras of a car, read from its JSON tables.

A state is a sample (a moment), a view is a camera, and a group is a scene. Only key frames are used, because only they
are synchronised. All references are checked on reading: a missing token or file, or a field of the wrong type, raises
InputError with the table and the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.files import read_json
from jepatlas.data.images.multiview import MultiViewTable, path_inside

__all__ = ["read_nuscenes"]

Record = dict[str, Any]
Kind = Literal["text", "a number", "true or false"]
TYPES = {"text": str, "a number": (int, float), "true or false": int}
SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class _Frame:
    """One key frame; the fields up to `location` become the columns of the table."""

    path: str
    state: str
    view: str
    group: str
    timestamp: float
    location: str
    token: str


COLUMNS = ("path", "state", "view", "group", "timestamp", "location")


def read_nuscenes(folder: Path | str, version: str | None = None, *, cameras: Sequence[str] = ()) -> MultiViewTable:
    """Key frames of the given cameras (default: all), ordered by time within scenes.

    `version` is the folder of the tables, such as v1.0-mini; it is optional if there is only one.
    """
    folder = Path(folder)
    tables = _Tables(_version_folder(folder, version))
    sensors = tables["sensor"].values()
    known = sorted({tables.text("sensor", row, "channel") for row in sensors if row.get("modality") == "camera"})
    for camera in cameras:
        if camera not in known:
            raise InputError(f"{tables.file('sensor')} has no camera '{camera}'. {did_you_mean(camera, known)}")
    frames = list(_key_frames(tables, set(cameras or known)))
    if not frames:
        raise InputError(f"{tables.file('sample_data')} has no key frame of a camera.")
    frames.sort(key=lambda frame: (frame.group, frame.timestamp, frame.state, frame.view))
    _check_unique(tables, frames)
    _check_files(folder, tables, frames)
    columns = {name: np.array([str(getattr(frame, name)) for frame in frames]) for name in COLUMNS}
    return MultiViewTable(folder, columns)


class _Tables:
    """JSON tables, each read on first use as records by token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, dict[str, Record]] = {}

    def __getitem__(self, name: str) -> dict[str, Record]:
        if name not in self._records:
            self._records[name] = _read_table(self.file(name))
        return self._records[name]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def follow(self, name: str, record: Record, to: str) -> Record:
        """The record of table `to` that a record of table `name` refers to."""
        token = self.text(name, record, f"{to}_token")
        if token not in self[to]:
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' refers to {to}_token '{token}', which is not in "
                f"{to}.json. Use tables of one version."
            )
        return self[to][token]

    def text(self, name: str, record: Record, field: str) -> str:
        """A field that names something: not blank, and valid in a file name."""
        value = self.value(name, record, field, "text")
        if not value.strip() or "\0" in value:
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' has the {field} {_shorten(value)}, which is not a valid "
                "name."
            )
        return value

    def value(self, name: str, record: Record, field: str, kind: Kind) -> Any:
        if field not in record:
            raise InputError(f"{self.file(name)}: token '{record['token']}' has no {field}.")
        if not isinstance(record[field], TYPES[kind]):
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' has the {field} {_shorten(record[field])}, but it must "
                f"be {kind}."
            )
        return record[field]


def _read_table(path: Path) -> dict[str, Record]:
    """The records of a table by token."""
    records = read_json(path)
    expected = "it must be a list of records with a token of type text"
    if not isinstance(records, list):
        raise InputError(f"{path} is not a nuScenes table: {expected}, but is {_shorten(records)}.")
    found: dict[str, Record] = {}
    for number, record in enumerate(records):
        token = record.get("token") if isinstance(record, dict) else None
        if not isinstance(token, str) or not token:
            raise InputError(f"{path} is not a nuScenes table: {expected}, but entry {number} is {_shorten(record)}.")
        if found.setdefault(token, record) != record:
            raise InputError(
                f"{path}: entry {number} has the token '{token}' of an earlier entry with other contents. Remove one "
                "of them."
            )
    return found


def _shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _key_frames(tables: _Tables, cameras: set[str]) -> Iterator[_Frame]:
    for record in tables["sample_data"].values():
        if not tables.value("sample_data", record, "is_key_frame", "true or false"):
            continue
        calibrated = tables.follow("sample_data", record, "calibrated_sensor")
        camera = tables.text("sensor", tables.follow("calibrated_sensor", calibrated, "sensor"), "channel")
        if camera not in cameras:
            continue
        sample = tables.follow("sample_data", record, "sample")
        scene = tables.follow("sample", sample, "scene")
        location = tables.value("log", tables.follow("scene", scene, "log"), "location", "text")
        yield _Frame(
            path=tables.text("sample_data", record, "filename"),
            state=sample["token"],
            view=camera,
            group=tables.text("scene", scene, "name"),
            timestamp=tables.value("sample", sample, "timestamp", "a number"),
            location=location,
            token=record["token"],
        )


def _check_unique(tables: _Tables, frames: Sequence[_Frame]) -> None:
    """Each sample has at most one key frame per camera; otherwise pairs would be ambiguous."""
    seen: dict[tuple[str, str], str] = {}
    for frame in frames:
        key = frame.state, frame.view
        if key in seen:
            raise InputError(
                f"{tables.file('sample_data')}: tokens '{seen[key]}' and '{frame.token}' are both key frames of sample "
                f"'{frame.state}' from {frame.view}. Remove one of them."
            )
        seen[key] = frame.token


def _check_files(folder: Path, tables: _Tables, frames: Sequence[_Frame]) -> None:
    missing = []
    for frame in frames:
        place = path_inside(folder, frame.path)
        if place is None:
            raise InputError(
                f"{tables.file('sample_data')}: token '{frame.token}' names {frame.path}, which lies outside {folder}. "
                "Move the images, or a link to them, into that folder."
            )
        if not _is_file(place):
            missing.append(frame)
    if missing:
        raise InputError(
            f"{tables.file('sample_data')}: token '{missing[0].token}' names {missing[0].path}, which is not in "
            f"{folder}; {len(missing)} of {len(frames)} images are missing. Unpack all parts of this version there, or "
            "select cameras whose images are present (--images.cameras)."
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def _version_folder(folder: Path, version: str | None) -> Path:
    if version is not None:
        if not (folder / version).is_dir():
            raise InputError(f"Folder of nuScenes tables not found: {folder / version}.")
        return folder / version
    found = sorted(path.parent for path in folder.glob("*/sample_data.json"))
    if not found:
        raise InputError(f"{folder} has no folder of nuScenes tables. It lies beside the folder samples.")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise InputError(f"{folder} has several folders of nuScenes tables: {names}. Choose one (--images.version).")
    return found[0]
