"""A folder that can be mailed: `KIND.json` names every other file with its size and SHA-256, and seals itself.

It is written whole or not at all, and never in place of a folder that holds anything else. Nothing is read that the
JSON does not name, that lies outside the folder or behind a link, or whose hash is another. The seal is the hash of
what the JSON says: damage and careless edits show. Who changes files, hashes and seal alike is found out only by a
seal that the sender told by another way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.files import finite, read_json, write_folder, write_json

__all__ = ["Sealed", "read_sealed", "write_sealed"]


@dataclass(frozen=True)
class Sealed:
    """What a sealed folder holds, read and checked."""

    content: Mapping[str, Any]
    files: Mapping[str, bytes]
    seal: str


def write_sealed(path: Path, kind: str, version: int, content: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    """Write the folder, in place of an older one of its kind; the seal."""
    _check_place(path, kind)
    listed = {name: {"bytes": len(data), "sha256": _hash(data)} for name, data in files.items()}
    try:
        plain = json.loads(json.dumps(finite(dict(content)), allow_nan=False))  # as it will be read, keys as texts
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: what is kept with an {kind} must be plain data for JSON: {error}.") from error
    meta = {"format": f"jepatlas.{kind}", "version": version, **plain, "files": listed}
    with write_folder(path) as folder:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        write_json(folder / f"{kind}.json", meta | {"seal": _seal(meta)})
    return _seal(meta)


def read_sealed(path: Path, kind: str, version: int) -> Sealed:
    """Read the folder, or say which file is not what it should be, and what to do."""
    meta = _read_meta(path, kind)
    where = path / f"{kind}.json"
    if meta["version"] != version:
        raise InputError(
            f"{where} has format version {meta['version']}, but this jepatlas reads version {version}. "
            f"Upgrade jepatlas, or ask for the {kind} in that version."
        )
    seal = meta.pop("seal")
    if seal != _seal(meta):
        raise InputError(f"{where} was changed after it was written: its seal no longer fits. {_REMEDY}")
    files = {name: _read_file(path, where, name, entry) for name, entry in meta.pop("files").items()}
    return Sealed(meta, files, seal)


_REMEDY = "Ask the sender for the folder again."


def _read_meta(path: Path, kind: str) -> dict[str, Any]:
    where = path / f"{kind}.json"
    if not path.is_dir():
        raise InputError(f"There is no folder {path}. An {kind} is a folder with '{where.name}' in it.")
    if where.is_symlink():
        raise InputError(f"{where} is a link to another place, and is not followed. {_REMEDY}")
    try:
        meta = read_json(where)
    except RecursionError as error:
        raise InputError(f"{where} is nested too deeply to be an {kind}. {_REMEDY}") from error
    match meta:
        case {"format": str(form), "version": int(), "files": dict(), "seal": str()} if form == f"jepatlas.{kind}":
            return meta
    raise InputError(f"{where} does not describe an {kind}. {_REMEDY}")


def _read_file(folder: Path, where: Path, name: str, entry: Any) -> bytes:
    path = _inside(folder, where, name)
    match entry:
        case {"bytes": int(size), "sha256": str(expected)}:
            pass
        case _:
            raise InputError(f"{where} gives no size and hash for '{name}'. {_REMEDY}")
    if not path.is_file():
        raise InputError(f"{path} is missing, though {where.name} names it. {_REMEDY}")
    try:  # hashed and used are the same bytes, whatever happens to the file in between
        data = path.read_bytes() if path.stat().st_size == size else None
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror}.") from error
    if data is None or _hash(data) != expected:
        raise InputError(f"{path} is damaged or was changed: it is not the file that {where.name} names. {_REMEDY}")
    return data


def _inside(folder: Path, where: Path, name: str) -> Path:
    """The file of that name; refused where the name leads, or could lead on any system, out of the folder."""
    pure = PurePosixPath(name)
    plain = name == str(pure) and not any(sign in name for sign in "\\:\0")
    if not plain or pure.is_absolute() or not pure.parts or {"..", "."} & set(pure.parts):
        raise InputError(f"{where} names the file '{name}', which is not inside the folder. {_REMEDY}")
    for part in [pure, *pure.parents][:-1]:
        if (folder / part).is_symlink():
            raise InputError(f"{folder / part} is a link to another place, and is not followed. {_REMEDY}")
    return folder / pure


def _check_place(path: Path, kind: str) -> None:
    """Refuse to put the folder in place of one that holds anything but an older one of its kind."""
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        listed = {*_read_meta(path, kind)["files"], f"{kind}.json"}
    except InputError as error:
        raise InputError(f"{path} exists and is no {kind} ({error}) Choose another place.") from error
    found = {str(one.relative_to(path).as_posix()) for one in path.rglob("*") if not one.is_dir() or one.is_symlink()}
    if others := sorted(found - listed):
        raise InputError(
            f"{path} also holds '{others[0]}', which is no part of the {kind} there and would be lost. "
            "Move it away, or choose another place."
        )


def _seal(meta: Mapping[str, Any]) -> str:
    return _hash(json.dumps(meta, sort_keys=True).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
