"""One process of this machine at a time: workers that need the same thing wait for the first to make it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["alone"]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock beside what is to be made at `path`.

    The lock is the system's, so it does not outlive its process. Where there is none, every worker makes its own.
    """
    lock = path.with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        if sys.platform != "win32":
            import fcntl  # noqa: PLC0415  (there is none on Windows)

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
