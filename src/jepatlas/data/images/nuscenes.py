"""nuScenes: the cameras of a car that takes all its pictures at one moment, read from its JSON tables.

A state is a sample (a moment), a view is a camera, a group is a scene. Only key frames are synchronised, so only they
are taken. Every reference is followed before anything is trained: a token or file that is missing, or anything else
than what the field should hold, is an error that says which table and record has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jepatlas.core.errors import InputError, did_you_mean
from jepatlas.core.files import read_json
from jepatlas.data.images.multiview import MultiViewTable
from jepatlas.data.images.places import inside

__all__ = ["read_nuscenes"]

Record = dict[str, Any]
Kind = Literal["text", "a number", "true or false"]
KINDS = {"text": str, "a number": (int, float), "true or false": int}
SHOWN = 60  # characters of what stands where something else should
COLUMNS = ("path", "state", "view", "group", "timestamp", "location")


def read_nuscenes(folder: Path | str, version: str | None = None, *, cameras: Sequence[str] = ()) -> MultiViewTable:
    """The key frames of some cameras (all where none are named), in the order of time within their scenes.

    `version` names the folder of tables, such as v1.0-mini; it may be left out where there is only one.
    """
    folder = Path(folder)
    tables = _Tables(_version_folder(folder, version))
    known = sorted(
        {tables.text("sensor", row, "channel") for row in tables["sensor"].values() if row.get("modality") == "camera"}
    )
    for camera in cameras:
        if camera not in known:
            raise InputError(f"{tables.file('sensor')} has no camera '{camera}'. {did_you_mean(camera, known)}")
    rows = sorted(_rows(tables, set(cameras or known)), key=lambda row: (row[3], row[4], row[1], row[2]))
    if not rows:
        raise InputError(f"{tables.file('sample_data')} has no key frame of a camera.")
    _check_unique(tables, rows)
    _check_files(folder, tables, [(row[0], row[-1]) for row in rows])
    return MultiViewTable(folder, {name: np.array([str(row[n]) for row in rows]) for n, name in enumerate(COLUMNS)})


class _Tables:
    """The tables that were asked for, each as records by token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, dict[str, Record]] = {}

    def __getitem__(self, name: str) -> dict[str, Record]:
        if name not in self._read:
            self._read[name] = _by_token(self.file(name))
        return self._read[name]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def follow(self, name: str, record: Record, to: str) -> Record:
        """The record of table `to` that a record of table `name` refers to."""
        token = self.text(name, record, f"{to}_token")
        if token not in self[to]:
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' refers to {to}_token '{token}', which "
                f"{to}.json does not have. Are all tables of one version?"
            )
        return self[to][token]

    def text(self, name: str, record: Record, field: str) -> str:
        """What a field names: no empty text, and none that no file could be called."""
        found = self.value(name, record, field, "text")
        if not found.strip() or "\0" in found:
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' has the {field} {_shown(found)}, "
                "but that must name something."
            )
        return found

    def value(self, name: str, record: Record, field: str, kind: Kind) -> Any:
        if field not in record:
            raise InputError(f"{self.file(name)}: token '{record['token']}' has no {field}.")
        if not isinstance(record[field], KINDS[kind]):
            raise InputError(
                f"{self.file(name)}: token '{record['token']}' has the {field} {_shown(record[field])}, "
                f"but that must be {kind}."
            )
        return record[field]


def _by_token(path: Path) -> dict[str, Record]:
    """The records of a table; each has a token of its own."""
    records, found = read_json(path), {}
    what = "that is a list of records, each with a token that is text"
    if not isinstance(records, list):
        raise InputError(f"{path} is no table of nuScenes: {what}, but it holds {_shown(records)}.")
    for number, row in enumerate(records):
        token = row.get("token") if isinstance(row, dict) else None
        if not isinstance(token, str) or not token:
            raise InputError(f"{path} is no table of nuScenes: {what}, but entry {number} is {_shown(row)}.")
        if found.setdefault(token, row) != row:
            raise InputError(
                f"{path}: entry {number} has the token '{token}', and so has another one before it, which "
                "says something else. Keep one of them."
            )
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _rows(tables: _Tables, cameras: set[str]) -> Iterator[tuple[Any, ...]]:
    """Columns of each key frame, and its token."""
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
        yield (
            tables.text("sample_data", record, "filename"),
            sample["token"],
            camera,
            tables.text("scene", scene, "name"),
            tables.value("sample", sample, "timestamp", "a number"),
            location,
            record["token"],
        )


def _check_unique(tables: _Tables, rows: Sequence[tuple[Any, ...]]) -> None:
    """One key frame of a sample and a camera: a second one would leave open which is the pair."""
    seen: dict[tuple[str, str], str] = {}
    for _, sample, camera, *_, token in rows:
        if (sample, camera) in seen:
            raise InputError(
                f"{tables.file('sample_data')}: tokens '{seen[sample, camera]}' and '{token}' are both key frames of "
                f"sample '{sample}' from {camera}. Keep one of them."
            )
        seen[sample, camera] = token


def _check_files(folder: Path, tables: _Tables, named: list[tuple[str, str]]) -> None:
    places = [inside(folder, path) for path, _ in named]
    if None in places:
        path, token = named[places.index(None)]
        raise InputError(
            f"{tables.file('sample_data')}: token '{token}' names {path}, which lies outside {folder}. "
            "Put its images, or a link to them, into that folder, and name them there."
        )
    missing = [pair for place, pair in zip(places, named, strict=True) if place and not _is_file(place)]
    if missing:
        path, token = missing[0]
        raise InputError(
            f"{tables.file('sample_data')}: token '{token}' names {path}, but {folder} has no such file; "
            f"{len(missing)} of {len(named)} images are missing. Unpack all parts of this version there, "
            "or read only the cameras whose images are (--images.cameras)."
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that is locked
        return False


def _version_folder(folder: Path, version: str | None) -> Path:
    if version is not None:
        if not (folder / version).is_dir():
            raise InputError(f"There is no folder {folder / version} with nuScenes tables.")
        return folder / version
    found = sorted(path.parent for path in folder.glob("*/sample_data.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        seen = (
            f"several: {names}. Choose one (--images.version)" if found else "none. It lies beside the folder samples"
        )
        raise InputError(f"{folder} should have one folder of nuScenes tables, but there is {seen}.")
    return found[0]
