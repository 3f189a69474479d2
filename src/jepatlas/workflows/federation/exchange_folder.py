"""The exchange folder: each member writes one sealed folder per round, once and atomically.

ROUND/NAME/exchange.json (or atlas.json)    lists every other file with its size and SHA-256, with a seal
ROUND/NAME/….safetensors                    numbers; nothing is ever unpickled

A copy stays in the sender's own folder and is written first, so a member that was killed sends the same bytes again.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import safetensors.numpy

from jepatlas.alignment.atlas import check_name
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Table
from jepatlas.core.files import read_json, write_folder
from jepatlas.core.parsing import parse_safetensors
from jepatlas.core.sealing import read_sealed_folder, sha256_of_bytes, write_sealed_folder

__all__ = [
    "Absent",
    "Entry",
    "Exchange",
    "Message",
    "list_files",
    "manifest_table",
    "read_message",
    "transcript",
    "write_message",
]

KIND, VERSION = "exchange", 1
KINDS = (KIND, "atlas")
PAUSE = 0.1  # seconds between two checks for new files

T = TypeVar("T")


class Absent(InputError):
    """A partner has not sent its part in time. The same command can be given again."""


class Sealed(Protocol):
    """Data that was read together with its seal."""

    @property
    def seal(self) -> str: ...


@dataclass(frozen=True)
class Message:
    """Content and arrays that a member sent in one round."""

    content: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    seal: str
    """Hash of the bytes that were read."""


def write_message(place: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """Write a sealed folder with one file per array."""
    files = {
        f"{name}.safetensors": safetensors.numpy.save({name: np.ascontiguousarray(array)})
        for name, array in (arrays or {}).items()
    }
    write_sealed_folder(place, KIND, VERSION, content, files)


def read_message(place: Path) -> Message:
    """Read a sealed folder; raises InputError for damaged files and numbers that are not finite."""
    sealed = read_sealed_folder(place, KIND, VERSION)
    arrays: dict[str, np.ndarray] = {}
    for file, data in sealed.files.items():
        name = file.removesuffix(".safetensors")
        found = parse_safetensors(data, place / file)
        if name not in found:
            raise InputError(f"{place / file} does not hold the array '{name}'.")
        arrays[name] = found[name]
        if not np.isfinite(arrays[name]).all():
            raise InputError(f"{place / file} holds numbers that are not finite. Its sender must send it again.")
    return Message(sealed.content, arrays, sealed.seal)


def transcript(*rounds: Mapping[str, Sealed]) -> str:
    """Hash of all seals that were read in these rounds, by which members detect that they read different files.

    The folder is not read again: a file that was swapped while it was read may have been restored since.
    """
    seals = [f"{name} {received[name].seal}\n" for received in rounds for name in sorted(received)]
    return sha256_of_bytes("".join(seals).encode())


@dataclass(frozen=True)
class Exchange:
    """The exchange folder as one member sees it."""

    place: Path
    kept: Path
    """Copies of what this member sent, in its own folder."""
    name: str
    timeout: float = 3600.0
    """Seconds to wait for partners in each round."""

    def send(self, step: str, write: Callable[[Path], object]) -> None:
        """Write once. What was sent before is sent again unchanged."""
        own, there = self.kept / step, self.place / step / self.name
        if there.exists() and not own.exists():
            raise InputError(
                f"{there} exists, but this member has not sent it: another member has the name '{self.name}'. Choose "
                "another --name, the --out that it was sent from, or a new exchange."
            )
        if not own.exists():
            write(own)
        if not there.exists():
            with write_folder(there) as folder:
                shutil.copytree(own, folder, dirs_exist_ok=True)

    def receive(self, step: str, names: Iterable[str], read: Callable[[Path], T]) -> dict[str, T]:
        """Wait for the parts of all named members in a round, and read them."""
        names = sorted(names)
        self.wait(
            lambda: set(names) <= set(self.senders(step)),
            lambda: f"{' and '.join(sorted(set(names) - set(self.senders(step))))} has not sent '{step}'",
        )
        if self.name in names and _manifest(self.place / step / self.name) != _manifest(self.kept / step):
            raise InputError(
                f"{self.place / step / self.name} was changed after this member sent it. Delete it; this command will "
                f"send {self.kept / step} again."
            )
        return {name: read(self.place / step / name) for name in names}

    def senders(self, step: str) -> list[str]:
        """Members whose folder of this round is complete."""
        folders = sorted((self.place / step).glob("*")) if (self.place / step).is_dir() else []
        return [folder.name for folder in folders if not folder.name.startswith(".") and _complete(folder)]

    def wait(self, ready: Callable[[], bool], missing: Callable[[], str]) -> None:
        """Wait until `ready()`; raises Absent with `missing()` after the timeout."""
        end = time.monotonic() + self.timeout
        while not ready():
            if time.monotonic() > end:
                raise Absent(
                    f"after {self.timeout:g} s, {missing()} to {self.place}. Give the same command again when it has "
                    "been started."
                )
            time.sleep(PAUSE)


def _manifest_file(folder: Path) -> Path | None:
    """The JSON file that lists all other files of a folder."""
    for kind in KINDS:
        if (folder / f"{kind}.json").is_file():
            return folder / f"{kind}.json"
    return None


def _manifest(folder: Path) -> bytes | None:
    file = _manifest_file(folder)
    return None if file is None else file.read_bytes()


def _complete(folder: Path) -> bool:
    """Whether all listed files are there: synchronisation tools copy files one by one, in any order.

    A manifest that cannot be parsed may still be arriving. Other defects are reported when it is read.
    """
    manifest = _manifest_file(folder)
    if manifest is None:
        return False
    check_name("member", folder.name)
    try:
        listed = read_json(manifest)
    except (InputError, RecursionError):
        return False
    files = listed.get("files") if isinstance(listed, dict) else None
    return not isinstance(files, dict) or all((folder / name).is_file() for name in files)


# --- list of exchanged files ---

CONTENTS = {
    "states": "hashes of the ids of its states",
    "latents": "latents of agreed states",
    "groups": "group numbers of agreed states",
    "pca": "control: principal components of raw input, agreed states",
    "untrained": "control: latents of its own untrained network, agreed states",
    "random": "control: a random network on raw input, agreed states",
    "anchors": "frame coordinates of agreed states, and their hashes",
}


@dataclass(frozen=True)
class Entry:
    """One exchanged file."""

    member: str
    step: str
    file: str
    what: str
    shape: str
    size: int
    sha256: str


def list_files(folder: Path, member: str, step: str) -> list[Entry]:
    """All files of one member in one round, manifest first."""
    manifest = _manifest_file(folder)
    assert manifest is not None  # the folder was read before
    return [_entry(folder, name, member, step) for name in (manifest.name, *read_json(manifest)["files"])]


def _entry(folder: Path, name: str, member: str, step: str) -> Entry:
    data = (folder / name).read_bytes()
    shape = ""
    if name.endswith(".safetensors"):
        what = CONTENTS.get(name.removesuffix(".safetensors"), "its map into the frame")
        shape = _shapes(data)
    elif name == "atlas.json":
        what = "names, sizes, hashes; verdicts on its map"
    else:
        what = "names, sizes, hashes; settings"
    return Entry(member, step, name, what, shape, len(data), sha256_of_bytes(data))


def _shapes(data: bytes) -> str:
    """Shapes and types of the arrays of a file."""
    arrays = sorted(parse_safetensors(data, "A file of a member").items())
    shapes = Counter(f"{' × '.join(map(str, array.shape))} {array.dtype}" for _, array in arrays)
    return "; ".join(shape if count == 1 else f"{count} of {shape}" for shape, count in shapes.items())


def manifest_table(title: str, listed: Sequence[Entry]) -> Table:
    """All exchanged files with their sizes and hashes."""
    rows: list[list[Any]] = [
        [one.member, f"{one.step}/{one.member}/{one.file}", one.what, one.shape, one.size, one.sha256] for one in listed
    ]
    rows.append(["total", f"{len(listed)} files", "", "", sum(one.size for one in listed), ""])
    return Table(title, ["from", "file", "what", "rows × width", "bytes", "SHA-256"], rows)
