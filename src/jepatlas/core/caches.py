"""Where what was costly to make is kept: the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/jepatlas, or ~/.cache/jepatlas; a relative path in the variable counts as none."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "jepatlas"
