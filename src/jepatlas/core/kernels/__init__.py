"""Compiled kernels for the CPU. Each has an equivalent in plain torch or numpy; tests compare the two.

Kernels are single-threaded: parallel runs have one core each, and numba's threads conflict with torch's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

__all__ = ["compiled"]

Function = Callable[..., Any]


def compiled(function: Function | None = None, **options: Any) -> Any:
    """Decorator: `numba.njit`, with the compiled code kept for the next process."""
    import numba.core.config  # noqa: PLC0415  (takes a second to import)

    def decorate(function: Function) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # neither the folder of the source nor the user's cache can be written
            setattr(numba.core.config, "CACHE_DIR", _temporary_cache())  # noqa: B010  (numba defines it at run time)
            return numba.njit(cache=True, **options)(function)

    return decorate if function is None else decorate(function)


def _temporary_cache() -> str:
    """A folder for compiled code that lasts as long as this process. Its worker processes share it."""
    folder = tempfile.mkdtemp(prefix="jepatlas-numba-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    print(
        "jepatlas: compiled code cannot be kept, because neither the installation nor the cache can be written. Set "
        "XDG_CACHE_HOME to a writable folder to start faster.",
        file=sys.stderr,
    )
    return folder
