"""Files that are whole or absent: written beside, synced, renamed.

A crash, a kill or a full disk at any moment leaves the previous version in place.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jepatlas.base.errors import InputError

__all__ = ["read_json", "sha256", "write_bytes", "write_folder", "write_json", "write_text"]


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path` in one step."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _clear_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


@contextmanager
def write_folder(path: Path) -> Iterator[Path]:
    """Fill a folder beside `path`; it takes the name `path` only when all of it is on disk."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _clear_errors(path):
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        try:
            yield beside
            for file in beside.iterdir():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
            _sync_folder(beside)
            shutil.rmtree(path, ignore_errors=True)
            os.replace(beside, path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        _sync_folder(path.parent)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Could not write {path}: {error.strerror or error}. Nothing was changed there; "
            "free some space or choose another place with --out."
        ) from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write plain data; infinite and undefined numbers become "inf", "-inf" and "nan"."""
    write_text(path, json.dumps(_finite(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(Path(path).read_text())
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid JSON ({error}). Was it edited or cut short?") from error


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
