"""One writer at a time: locks on files and folders, and temporary names that tell which process owns them."""

from __future__ import annotations

import json
import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any

from jepatlas.core.errors import InputError

__all__ = ["temporary_name", "writer_lock"]

POLL = 0.1  # seconds

_held: dict[Path, int] = {}  # locks held by this process, and their threads
_cleaned: set[Path] = set()  # names whose abandoned files have been removed


@contextmanager
def writer_lock(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of the file or folder at `path`. If another process holds it, wait or raise InputError.

    The lock is on a file `.NAME.lock` beside `path`, which exists only while it is held. The operating system releases
    the lock of a process that ends, however it ends. File systems without locks have only the content of that file: the
    process and the host of the owner, which counts as ended if this host has no such process. Within a thread the block
    may be entered again.
    """
    path = path.resolve()
    if _held.get(path) == threading.get_ident():
        yield
        return
    place = path.with_name(f".{path.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = _acquire(place, wait)
    except BlockingIOError as error:
        raise InputError(
            f"{path} is being written by {_owner(place)}. Wait for it, or choose another place."
        ) from error
    except OSError as error:
        from jepatlas.core.files import write_error  # noqa: PLC0415  (imports this module)

        raise write_error(path, error) from error
    _held[path] = threading.get_ident()
    try:
        yield
    finally:
        del _held[path]
        place.unlink(missing_ok=True)  # before the lock is released, so that nobody locks a file without a name
        file.close()


def _acquire(place: Path, wait: bool) -> IO[str]:
    """The locked file; raises BlockingIOError if another process holds the lock and we do not wait."""
    while True:
        file = place.open("a+", encoding="utf-8")
        if _try_lock(file, place) and _is_file(file, place):
            with suppress(OSError):  # on a full disk the lock is held without a name
                file.truncate(0)
                file.write(json.dumps(_this_process()))
                file.flush()
            return file
        file.close()
        if place.exists():  # otherwise its owner removed it between our opening and locking it
            if not wait:
                raise BlockingIOError
            time.sleep(POLL)


def _try_lock(file: IO[str], place: Path) -> bool:
    try:
        import fcntl  # noqa: PLC0415  (not available on Windows)

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # no locks on this system or disk
        return _is_abandoned(place)
    return True


def _is_file(file: IO[str], place: Path) -> bool:
    """Whether an open file still has its name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), place.stat())
    return False


def _this_process() -> dict[str, Any]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:4]])
    return {"machine": machine_tag(), "host": platform.node(), "pid": os.getpid(), "since": started, "command": command}


def _read_owner(place: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(place.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def _owner(place: Path) -> str:
    found = _read_owner(place)
    if not found:
        return "another process"
    return f"process {found.get('pid')} on {found.get('host')} ({found.get('command')}, since {found.get('since')})"


def _is_abandoned(place: Path) -> bool:
    """Whether the owner in a lock file is a process of this machine that has ended, or nobody."""
    found = _read_owner(place)
    return not found or (found.get("machine") == machine_tag() and not _is_alive(found.get("pid")))


def _is_alive(pid: Any) -> bool:
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True  # it belongs to another user
    except (OSError, OverflowError, TypeError, ValueError):
        return False
    return True


@cache
def machine_tag() -> str:
    """Eight hexadecimal digits for this machine and its process numbers, which containers have of their own."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115  (not a path)
    import hashlib  # noqa: PLC0415  (slow to import, and often not needed)

    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def temporary_name(path: Path) -> Path:
    """A hidden name beside `path` that nobody else uses: `.NAME.MACHINE-PROCESS-RANDOM.part`.

    Files and folders with such names for the same `path` whose process has ended are removed first.
    """
    if path not in _cleaned:
        _cleaned.add(path)
        _remove_abandoned(path)
    return path.with_name(f".{path.name}.{machine_tag()}-{os.getpid()}-{secrets.token_hex(4)}.part")


def _remove_abandoned(path: Path) -> None:
    import shutil  # noqa: PLC0415  (needed rarely)

    prefix = f".{path.name}.{machine_tag()}-"
    with suppress(OSError):
        for found in path.parent.iterdir():
            pid, _, rest = found.name.removeprefix(prefix).partition("-")
            if not (found.name.startswith(prefix) and found.name.endswith(".part") and rest and pid.isdecimal()):
                continue
            if _is_alive(pid):
                continue
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found, ignore_errors=True)
            else:
                found.unlink(missing_ok=True)
