"""Files that a run learns from: named once, and held to what they were when the run began."""

from __future__ import annotations

import os
from pathlib import Path

from jepatlas.core.errors import InputError
from jepatlas.core.files import sha256

__all__ = ["MOVED", "refuse_changed", "seal"]

MOVED = "If it was moved, write its new place into the recipe.yaml of the run."


def seal(path: str) -> tuple[str, str]:
    """Where a file lies, whatever the working folder, and what it hashes to. A link stays one: what is named beside it
    lies beside the link, and not where it leads."""
    place = Path(os.path.abspath(_named(path)))  # noqa: PTH100  (which Path.absolute does not free of "..")
    return str(place), _hash(place)


def refuse_changed(path: str, expected: str | None) -> Path:
    """The file; refused where it is not named, or no longer what `expected` says."""
    place = _named(path)
    if expected is not None and not place.exists():
        raise InputError(f"There is no file {path} any more, which this run learns from. {MOVED}")
    if expected is not None and expected != _hash(place):
        raise InputError(f"{path} has changed since this run began. Put the file back, or begin a new run.")
    return place


def _named(path: str) -> Path:
    if not path:
        raise InputError("The experience is to come from a file, but none is named. Give its path.")
    return Path(path)


def _hash(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
