"""Every reader of users' files, on mutated valid files: it reads them or raises InputError, and nothing else.

JEPATLAS_FUZZ is the number of mutations of each file; `make fuzz` sets it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from workflows.energy.tiny import saved

from jepatlas.alignment import Atlas, ChartLatents, LinearProbe, load_atlas, save_atlas
from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json, write_json
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.records import Record, Verdict
from jepatlas.data import EpisodeFile
from jepatlas.data.episode_writer import EpisodeWriter
from jepatlas.recipes import Recipe, any_recipe, recipe_text
from jepatlas.reporting.chapters import read_record
from jepatlas.workflows.energy import load_energy_file, save_energy

MUTATIONS = int(os.environ.get("JEPATLAS_FUZZ", "150"))
ROWS = np.random.default_rng(0).standard_normal((20, 3))
TOKENS = (b"\x00", b"\xff" * 8, b"[" * 3000, b"9" * 5000, b"{}", b"null", b"-1", b"1e999", b"*a", b"\xed\xa0\x80")
RECORD = "records/outcome.json"
ARRAYS = ("npy", "npz", "safetensors", "csv", "parquet")


@dataclass(frozen=True)
class Reader:
    """How to write a valid file at a path, which file of it to mutate, and how to read it."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    mutated: str = ""  # a file in the folder; by default the path is a file


def write_arrays_as(path: Path) -> None:
    write_arrays(path, {"h": ROWS} if path.suffix == ".npy" else {"h": ROWS, "ids": np.arange(20)})


def write_episodes(path: Path) -> None:
    with EpisodeWriter(path, about={"world": {"kind": "rooms"}}) as writer:
        for _ in range(3):
            writer.append({"state": ROWS, "action": ROWS[:, :2], "pixels": np.zeros((20, 8, 8, 3), np.uint8)})


def read_episodes(path: Path) -> None:
    with EpisodeFile(path) as file:
        file.episode(0)


def write_record(path: Path) -> None:
    verdict = Verdict("r2", 0.5, 0.4, 0.6, 10, 0.0, 0.9, "higher", False, "Train longer.")
    Record("Title", "Summary.", {"seed": 0}, (verdict,)).save(path, "outcome")


def write_atlas(path: Path) -> None:
    ids = np.arange(20)
    save_atlas(Atlas.build([ChartLatents("ada", ROWS, ids=ids), ChartLatents("ben", ROWS + 1, ids=ids)]), path)


def write_probe(path: Path) -> None:
    probe = LinearProbe(np.array(["a", "b", "c"]), np.eye(3), np.zeros(3), np.zeros(3), np.ones(3))
    probe.save(path)


def write_recipe(path: Path) -> None:
    path.mkdir()
    (path / "recipe.yaml").write_text(recipe_text(Recipe()))


READERS = [
    *(
        Reader(f"arrays.{kind}", write_arrays_as, read_arrays)
        for kind in ("npy", "npz", "safetensors", "csv", "parquet")
    ),
    Reader("episodes.h5", write_episodes, read_episodes),
    Reader("file.json", lambda path: write_json(path, {"a": [1, {"b": "c"}], "d": 1e9}), read_json),
    Reader("run", write_recipe, any_recipe, "recipe.yaml"),
    Reader("record", write_record, lambda path: read_record(path / RECORD), RECORD),
    Reader("map.safetensors", lambda path: LinearMap(np.eye(3), np.zeros(3), np.zeros(3)).save(path), LinearMap.load),
    Reader("probe.safetensors", write_probe, LinearProbe.load),
    Reader("energy.safetensors", lambda path: save_energy(saved(), path), load_energy_file),
    Reader("atlas", write_atlas, load_atlas, "atlas.json"),
]


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Up to three of: change bytes, cut, repeat a part, insert a token, exchange two parts."""
    for _ in range(rng.integers(1, 4)):
        if not data:
            return data
        here, there = sorted(rng.integers(0, len(data), 2).tolist())
        match rng.integers(5):
            case 0:
                flipped = bytearray(data)
                for _ in range(rng.integers(1, 5)):
                    flipped[rng.integers(len(data))] = rng.integers(256)
                data = bytes(flipped)
            case 1:
                data = data[:here] if rng.integers(2) else data[:here] + data[there:]
            case 2:
                data = data[:there] + data[here:]
            case 3:
                data = data[:here] + TOKENS[rng.integers(len(TOKENS))] + data[here:]
            case _:
                data = data[there:] + data[here:there] + data[:here]
    return data


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_mutated_files_are_read_or_refused(reader: Reader, tmp_path: Path):
    path = tmp_path / reader.name
    reader.write(path)
    place = path / reader.mutated if reader.mutated else path
    whole = place.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for number in range(MUTATIONS):
        place.write_bytes(mutate(whole, rng))
        try:
            reader.read(path)
        except InputError as error:
            refused += 1
            assert str(error), number
    assert refused > MUTATIONS // 10


@pytest.mark.parametrize(
    "text",
    ["a: &a [1, 1]\nb: *a", "[" * 5000, "seed: " + "9" * 5000, "seed: 2001-99-99", "{" * 200 + "}" * 200],
    ids=["alias", "deep", "long number", "date", "nested"],
)
def test_recipes_that_would_fill_memory_or_the_stack(text: str, tmp_path: Path):
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(InputError, match=r"recipe\.yaml"):
        any_recipe(tmp_path)


def test_small_files_that_declare_large_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
    with open(tmp_path / "h.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InputError, match=r"h\.npy declares"):
        read_arrays(tmp_path / "h.npy")
    np.savez_compressed(tmp_path / "h.npz", h=np.zeros((1000, 1000)))
    monkeypatch.setenv("JEPATLAS_MAX_BYTES", "1000000")
    with pytest.raises(InputError, match="JEPATLAS_MAX_BYTES"):
        read_arrays(tmp_path / "h.npz")
    monkeypatch.setenv("JEPATLAS_MAX_BYTES", "9000000")
    assert read_arrays(tmp_path / "h.npz")["h"].shape == (1000, 1000)


def test_pickled_objects_are_refused(tmp_path: Path):
    np.save(tmp_path / "h.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(InputError, match="pickled"):
        read_arrays(tmp_path / "h.npy")


@pytest.mark.parametrize("kind", ["external", "virtual", "link", "soft"])
def test_episodes_in_other_files_are_refused(kind: str, tmp_path: Path):
    h5py: Any = pytest.importorskip("h5py")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["state"] = np.arange(20.0)
    (tmp_path / "raw").write_bytes(np.arange(20.0).tobytes())
    path = tmp_path / "episodes.h5"
    with h5py.File(path, "w") as file:
        file["ep_len"], file["ep_offset"] = np.array([20], np.int32), np.array([0], np.int64)
        file["action"] = np.zeros((20, 1))
        if kind == "external":
            file.create_dataset("state", (20,), "f8", external=[(str(tmp_path / "raw"), 0, 160)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout((20,), "f8")
            layout[:] = h5py.VirtualSource(str(secret), "state", (20,))
            file.create_virtual_dataset("state", layout)
        elif kind == "link":
            file["state"] = h5py.ExternalLink(str(secret), "/state")
        else:
            file["state"] = h5py.SoftLink("/action")
    with pytest.raises(InputError, match="state"):
        EpisodeFile(path)


def test_episodes_that_declare_more_than_they_hold(tmp_path: Path):
    h5py: Any = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["ep_len"], file["ep_offset"] = np.array([1], np.int32), np.array([0], np.int64)
        file.create_dataset("state", (1, 10**9), "f8", chunks=(1, 10**5))
    with pytest.raises(InputError, match="declares"):
        EpisodeFile(tmp_path / "rows.h5")
    with h5py.File(tmp_path / "overflow.h5", "w") as file:
        file["ep_len"], file["ep_offset"] = np.array([3], np.int64), np.array([2**63 - 1], np.int64)
        file["state"] = np.zeros((5, 1))
    with pytest.raises(InputError, match="ep_offset"):
        EpisodeFile(tmp_path / "overflow.h5")


def test_recipes_written_by_pyyaml_are_read(tmp_path: Path):
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump({"seed": 3}))
    assert any_recipe(tmp_path).seed == 3
