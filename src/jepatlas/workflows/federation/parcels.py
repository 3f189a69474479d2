"""The exchange folder: what a member sends in a round is a folder of its own, written whole, once, and by it alone.

ROUND/NAME/exchange.json (or atlas.json)    names every other file with its size and SHA-256, and seals itself
ROUND/NAME/….safetensors                    numbers; nothing in an exchange is ever unpickled

A copy stays with the sender, and is written first: one that was killed sends the same bytes again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from jepatlas.alignment.atlas.chart import check_name
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_folder
from jepatlas.core.sealing import read_sealed_folder, sha256_of_bytes, write_sealed_folder

__all__ = ["KIND", "KINDS", "VERSION", "Absent", "Exchange", "Parcel", "read_parcel", "transcript", "write_parcel"]

KIND, VERSION = "exchange", 1
KINDS = (KIND, "atlas")
PAUSE = 0.1  # seconds between two looks

T = TypeVar("T")


class Absent(InputError):
    """A partner has not come in time: nobody's input is wrong, and the same command goes on."""


class Sealed(Protocol):
    """What was read knows the seal of the letter that it was read from."""

    @property
    def seal(self) -> str: ...


@dataclass(frozen=True)
class Parcel:
    """What a member said and sent in a round."""

    content: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]
    seal: str
    """The hash of the very bytes that these were read from."""


def write_parcel(place: Path, content: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> None:
    """One file for each array, so that each has a size and a hash of its own."""
    files = {
        f"{name}.safetensors": safetensors.numpy.save({name: np.ascontiguousarray(array)})
        for name, array in (arrays or {}).items()
    }
    write_sealed_folder(place, KIND, VERSION, content, files)


def read_parcel(place: Path) -> Parcel:
    """Refused by name where a file is cut, changed, or does not hold finite numbers."""
    sealed = read_sealed_folder(place, KIND, VERSION)
    arrays = {}
    for file, data in sealed.files.items():
        name = file.removesuffix(".safetensors")
        try:
            arrays[name] = safetensors.numpy.load(data)[name]
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{place / file} does not hold the array '{name}': {error}.") from error
        if not np.isfinite(arrays[name]).all():
            raise InputError(f"{place / file} holds numbers that are not finite. Its sender must send it anew.")
    return Parcel(sealed.content, arrays, sealed.seal)


def transcript(*rounds: Mapping[str, Sealed]) -> str:
    """A hash of all that was read in these rounds: members who were shown different files find out.

    The folder is not looked at again: a letter that was swapped while it was read may lie there as it was before.
    """
    seals = [f"{name} {told[name].seal}\n" for told in rounds for name in sorted(told)]
    return sha256_of_bytes("".join(seals).encode())


@dataclass(frozen=True)
class Exchange:
    """The folder as one member sees it."""

    place: Path
    kept: Path
    """Where copies of what this member sent stay, in its own folder."""
    name: str
    timeout: float = 3600.0
    """Seconds to wait for partners in each round."""

    def send(self, step: str, write: Callable[[Path], object]) -> None:
        """Write once; what was sent before is sent again, as it was."""
        own, there = self.kept / step, self.place / step / self.name
        if there.exists() and not own.exists():
            raise InputError(
                f"{there} exists, but this member has not sent it: another one is called '{self.name}'. "
                "Choose another --name, the --out that it was sent from, or a new exchange."
            )
        if not own.exists():
            write(own)
        if not there.exists():
            with write_folder(there) as folder:
                shutil.copytree(own, folder, dirs_exist_ok=True)

    def receive(self, step: str, names: Iterable[str], read: Callable[[Path], T]) -> dict[str, T]:
        """What each member sent in a round, by name; waited for, then read and checked."""
        names = sorted(names)
        self.wait(
            lambda: set(names) <= set(self.senders(step)),
            lambda: f"{' and '.join(sorted(set(names) - set(self.senders(step))))} has not sent '{step}'",
        )
        if self.name in names and _letter(self.place / step / self.name) != _letter(self.kept / step):
            raise InputError(
                f"{self.place / step / self.name} is no longer what this member sent: it was changed. "
                f"Delete it; this command will send {self.kept / step} again."
            )
        return {name: read(self.place / step / name) for name in names}

    def senders(self, step: str) -> list[str]:
        """Members whose folder of this round is there, with all files that it names."""
        folders = sorted((self.place / step).glob("*")) if (self.place / step).is_dir() else []
        return [folder.name for folder in folders if not folder.name.startswith(".") and _arrived(folder)]

    def wait(self, ready: Callable[[], bool], missing: Callable[[], str]) -> None:
        end = time.monotonic() + self.timeout
        while not ready():
            if time.monotonic() > end:
                raise Absent(
                    f"after {self.timeout:g} s, {missing()} to {self.place}. When it has been started, give "
                    "the same command again: it goes on where it stopped."
                )
            time.sleep(PAUSE)


def _letter(folder: Path) -> bytes | None:
    """The JSON of a folder, which has the hashes of all else in it."""
    found = [folder / f"{kind}.json" for kind in KINDS if (folder / f"{kind}.json").is_file()]
    return found[0].read_bytes() if found else None


def _arrived(folder: Path) -> bool:
    """Whether all files are there. Tools that bring folders to other machines do so file by file, in any order."""
    for kind in KINDS:
        if (folder / f"{kind}.json").is_file():
            check_name("member", folder.name)
            return _complete(folder, folder / f"{kind}.json")
    return False


def _complete(folder: Path, letter: Path) -> bool:
    """A letter that cannot be read yet is still on its way; of one that is wrong, whoever reads it tells."""
    try:
        listed = read_json(letter)
    except (InputError, RecursionError):
        return False
    files = listed.get("files") if isinstance(listed, dict) else None
    return not isinstance(files, dict) or all((folder / name).is_file() for name in files)
