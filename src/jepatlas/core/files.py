"""Atomic writing of files and folders, JSON, and the user's cache folder.

Content is written under a temporary name, synced to disk, and renamed. A crash or a full disk at any moment leaves the
previous version in place.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from jepatlas.core.errors import InputError
from jepatlas.core.locks import temporary_name
from jepatlas.core.parsing import parse_json

__all__ = [
    "cache_folder",
    "finite",
    "read_json",
    "temporary_sibling",
    "write_bytes",
    "write_error",
    "write_folder",
    "write_json",
    "write_text",
]

SYNCS = 16  # files of a folder that are synced concurrently


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path` atomically."""
    path = Path(path)
    with temporary_sibling(path) as beside, _clear_errors(path):
        beside.write_bytes(data)


@contextmanager
def temporary_sibling(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file, which is synced and renamed to `path` if the block succeeds."""
    path = Path(path)
    beside = temporary_name(path)
    with _clear_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.touch(exist_ok=False)
    try:
        yield beside
        with _clear_errors(path):
            _sync(beside)
            beside.replace(path)
            _sync(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


@contextmanager
def write_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to `path` when the block ends and its content is on disk.

    An existing folder is exchanged with the new one atomically. Systems that cannot exchange names (other than Linux,
    some network disks) need two renames; a kill between them leaves the previous version as `.NAME.….old`.
    """
    path = Path(path)
    beside = temporary_name(path)
    with _clear_errors(path):
        beside.mkdir(parents=True)
        try:
            yield beside
            with ThreadPoolExecutor(SYNCS) as pool:  # syncing thousands of files one by one is slow
                list(pool.map(_sync, [*beside.rglob("*"), beside]))
            _take_name(beside, path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        _sync(path.parent)


def _take_name(folder: Path, path: Path) -> None:
    """Rename `folder` to `path`; an existing folder at `path` gets the name of `folder`."""
    if path.is_symlink() or not path.is_dir():
        folder.replace(path)
    elif not _exchange(folder, path):
        _exchange_by_renames(folder, path)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names atomically with renameat2(…, RENAME_EXCHANGE); False if that is not available."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "renameat2"):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return libc.renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


def _exchange_by_renames(folder: Path, path: Path) -> None:
    aside = temporary_name(path).with_suffix(".old")
    path.rename(aside)
    try:
        folder.rename(path)
    except OSError:
        aside.rename(path)
        raise
    aside.rename(folder)


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError) as error:
        if isinstance(error, SafetensorError) and "I/O error" not in str(error):
            raise
        raise write_error(path, error) from error


def write_error(path: Path, error: Exception) -> InputError:
    """What to raise if `path` cannot be written."""
    remedy = "choose another place with --out"
    if path.is_relative_to(cache_folder()):
        remedy = "set the environment variable XDG_CACHE_HOME to a folder that can be written"
    reason = getattr(error, "strerror", None) or error
    return InputError(f"Could not write {path}: {reason}. Nothing was changed there. Free some space, or {remedy}.")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/jepatlas, or ~/.cache/jepatlas. A relative $XDG_CACHE_HOME is ignored."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = given if given.is_absolute() else Path.home() / ".cache"
    return base / "jepatlas"


def write_json(path: Path, value: object) -> None:
    """Write plain data as JSON; numbers that are not finite become the strings "inf", "-inf" and "nan"."""
    write_text(path, json.dumps(finite(value), indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror}.") from error
    return parse_json(data, path)


def finite(value: Any) -> Any:
    """Plain data for JSON: numpy scalars as Python numbers, and numbers that are not finite as strings."""
    if isinstance(value, dict):
        return {finite(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
