"""What was exchanged, file by file: what it is, its rows and width, its bytes, its hash. Nothing else ever left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import safetensors.numpy

from jepatlas.core.figures import Table
from jepatlas.core.files import read_json
from jepatlas.core.sealing import sha256_of_bytes
from jepatlas.workflows.federation.parcels import KINDS

__all__ = ["Entry", "entries", "ledger_table"]

WHAT = {
    "states": "hashes of the ids of its states",
    "latents": "latents of agreed states",
    "groups": "which agreed states belong together, by number",
    "pca": "control: principal components of raw input, agreed states",
    "untrained": "control: latents of its own network before its first step, agreed states",
    "random": "control: a random network of its own on raw input, agreed states",
    "anchors": "places of agreed states in the frame, and their hashes",
}


@dataclass(frozen=True)
class Entry:
    """One file of the exchange."""

    member: str
    step: str
    file: str
    what: str
    shape: str
    size: int
    sha256: str


def entries(folder: Path, member: str, step: str) -> list[Entry]:
    """All files of one member in one round, its JSON first."""
    letter = next(folder / f"{kind}.json" for kind in KINDS if (folder / f"{kind}.json").is_file())
    return [_entry(folder, name, member, step) for name in (letter.name, *read_json(letter)["files"])]


def _entry(folder: Path, name: str, member: str, step: str) -> Entry:
    data = (folder / name).read_bytes()
    what, shape = _said(name, data) if name.endswith(".safetensors") else ("names, sizes, hashes; settings", "")
    if name == "atlas.json":
        what = "names, sizes, hashes; verdicts of its map"
    return Entry(member, step, name, what, shape, len(data), sha256_of_bytes(data))


def _said(name: str, data: bytes) -> tuple[str, str]:
    """What a file of arrays is, and their shapes and types."""
    arrays = sorted(safetensors.numpy.load(data).items())
    shapes = Counter(f"{' × '.join(map(str, array.shape))} {array.dtype}" for _, array in arrays)
    told = [shape if count == 1 else f"{count} of {shape}" for shape, count in shapes.items()]
    return WHAT.get(name.removesuffix(".safetensors"), "its map into the frame"), "; ".join(told)


def ledger_table(title: str, listed: Sequence[Entry]) -> Table:
    rows = [
        [one.member, f"{one.step}/{one.member}/{one.file}", one.what, one.shape, one.size, one.sha256] for one in listed
    ]
    rows.append(["together", f"{len(listed)} files", "", "", sum(one.size for one in listed), ""])
    return Table(title, ["from", "file", "what", "rows × width", "bytes", "SHA-256"], rows)
