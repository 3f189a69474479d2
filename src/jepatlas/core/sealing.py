"""SHA-256 hashes of data, files and folders, and checks that they are unchanged.

A sealed folder holds `KIND.json`, which lists every other file with its size and hash, and a seal: the hash of the
JSON's own content. It is written atomically and never replaces a folder that holds anything else. Reading refuses files
that are not listed, lie outside the folder or behind a link, or do not match their hash. The seal detects damage and
edits. It does not exclude forgery, unless the sender communicates the seal by another channel.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jepatlas.core.errors import InputError
from jepatlas.core.files import finite, read_json, write_folder, write_json

__all__ = [
    "MOVED",
    "SealedFolder",
    "check_unchanged",
    "read_sealed_folder",
    "seal_file",
    "sha256_of_bytes",
    "sha256_of_file",
    "sha256_of_json",
    "write_sealed_folder",
]

MOVED = "If it was moved, write its new path into the recipe.yaml of the run."
_REMEDY = "Ask the sender for the folder again."


def sha256_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_json(value: object) -> str:
    """Hash of plain data, independent of the order of keys."""
    return sha256_of_bytes(json.dumps(value, sort_keys=True).encode())


def seal_file(path: str) -> tuple[str, str]:
    """The absolute path of a file or folder that a run uses, and its hash.

    Links are kept, so that relative paths still work.
    """
    place = Path(os.path.abspath(_named(path)))  # noqa: PTH100  (Path.absolute would keep "..")
    return str(place), _readable_hash(place)


def check_unchanged(path: str, expected: str | None) -> Path:
    """The path of a file that a run uses; raises InputError if the file is missing or its hash is not `expected`."""
    place = _named(path)
    if expected is not None and not place.exists():
        raise InputError(f"There is no file {path} any more, but this run uses it. {MOVED}")
    if expected is not None and expected != _readable_hash(place):
        raise InputError(f"{path} has changed since this run began. Restore the file or start a new run.")
    return place


def _named(path: str) -> Path:
    if not path:
        raise InputError("No file is given. Give its path.")
    return Path(path)


def _readable_hash(path: Path) -> str:
    try:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            return sha256_of_json([[file.relative_to(path).as_posix(), sha256_of_file(file)] for file in files])
        return sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error


@dataclass(frozen=True)
class SealedFolder:
    """The verified content of a sealed folder."""

    content: Mapping[str, Any]
    files: Mapping[str, bytes]
    seal: str


def write_sealed_folder(
    path: Path, kind: str, version: int, content: Mapping[str, Any], files: Mapping[str, bytes]
) -> str:
    """Write a sealed folder, replacing an older one of the same kind, and return its seal."""
    _check_place(path, kind)
    listed = {name: {"bytes": len(data), "sha256": sha256_of_bytes(data)} for name, data in files.items()}
    try:
        plain = json.loads(json.dumps(finite(dict(content)), allow_nan=False))  # the seal covers what will be read back
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the content of an {kind} must be plain data for JSON: {error}.") from error
    meta = {"format": f"jepatlas.{kind}", "version": version, **plain, "files": listed}
    seal = sha256_of_json(meta)
    with write_folder(path) as folder:
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        write_json(folder / f"{kind}.json", meta | {"seal": seal})
    return seal


def read_sealed_folder(path: Path, kind: str, version: int) -> SealedFolder:
    """Read and verify a sealed folder; raises InputError that names the file at fault."""
    meta = _read_meta(path, kind)
    where = path / f"{kind}.json"
    if meta["version"] != version:
        raise InputError(
            f"{where} has format version {meta['version']}, but this jepatlas reads version {version}. "
            f"Upgrade jepatlas, or ask for the {kind} in that version."
        )
    seal = meta.pop("seal")
    if seal != sha256_of_json(meta):
        raise InputError(f"{where} was changed after it was written: its seal does not match. {_REMEDY}")
    files = {name: _read_file(path, where, name, entry) for name, entry in meta.pop("files").items()}
    return SealedFolder(meta, files, seal)


def _read_meta(path: Path, kind: str) -> dict[str, Any]:
    where = path / f"{kind}.json"
    if not path.is_dir():
        raise InputError(f"There is no folder {path}. An {kind} is a folder that contains '{where.name}'.")
    if where.is_symlink():
        raise InputError(f"{where} is a symbolic link, which is not followed. {_REMEDY}")
    meta = read_json(where)
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
        raise InputError(f"{path} is missing, but {where.name} lists it. {_REMEDY}")
    try:  # the bytes that are hashed are the bytes that are returned, even if the file changes meanwhile
        data = path.read_bytes() if path.stat().st_size == size else None
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror}.") from error
    if data is None or sha256_of_bytes(data) != expected:
        raise InputError(f"{path} is damaged or was changed: it does not match its entry in {where.name}. {_REMEDY}")
    return data


def _inside(folder: Path, where: Path, name: str) -> Path:
    """The path of a listed file; refused if the name leads out of the folder on any operating system."""
    pure = PurePosixPath(name)
    plain = name == str(pure) and not any(sign in name for sign in "\\:\0")
    if not plain or pure.is_absolute() or not pure.parts or {"..", "."} & set(pure.parts):
        raise InputError(f"{where} names the file '{name}', which is not inside the folder. {_REMEDY}")
    for part in [pure, *pure.parents][:-1]:
        if (folder / part).is_symlink():
            raise InputError(f"{folder / part} is a symbolic link, which is not followed. {_REMEDY}")
    return folder / pure


def _check_place(path: Path, kind: str) -> None:
    """Refuse to replace a folder that holds anything but an older sealed folder of this kind."""
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        listed = {*_read_meta(path, kind)["files"], f"{kind}.json"}
    except InputError as error:
        raise InputError(f"{path} exists, but is not an {kind} ({error}) Choose another place.") from error
    found = {str(one.relative_to(path).as_posix()) for one in path.rglob("*") if not one.is_dir() or one.is_symlink()}
    if others := sorted(found - listed):
        raise InputError(
            f"{path} also holds '{others[0]}', which does not belong to the {kind} and would be lost. "
            "Move it away, or choose another place."
        )
