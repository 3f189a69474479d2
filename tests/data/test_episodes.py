"""Episode files: the published layout written with h5py, jepatlas's own files, and rejected files."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from jepatlas.core.errors import InputError
from jepatlas.data import Column, EpisodeFile, EpisodeWriter

LENGTHS = [4, 2, 5]


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    action = random.normal(size=(11, 2)).astype(np.float32)
    action[[3, 5, 10]] = np.nan
    return {"pixels": random.integers(0, 256, (11, 8, 6, 3), np.uint8), "action": action, "reward": np.arange(11.0)}


def published(path: Path, **changes: Any) -> Path:
    """The layout of stable-worldmodel: resizable datasets, chunks of 1, its number types."""
    data = columns() | {"ep_idx": np.repeat([0, 1, 2], LENGTHS).astype(np.int32)}
    data |= {"ep_len": np.array(LENGTHS, np.int32), "ep_offset": np.array([0, 4, 6], np.int64)} | changes
    with h5py.File(path, "w", libver="latest") as file:
        for name, values in data.items():
            if values is not None:
                shape = values.shape
                file.create_dataset(name, data=values, maxshape=(None, *shape[1:]), chunks=(1, *shape[1:]))
        file.create_group("notes").attrs["by"] = "hand"
    return path


def test_published_layout_is_read(tmp_path: Path):
    file, data = EpisodeFile(published(tmp_path / "a.h5")), columns()
    assert len(file) == 3 and file.lengths.tolist() == LENGTHS and file.offsets.tolist() == [0, 4, 6]
    assert set(file.columns) == {"pixels", "action", "reward", "ep_idx"}
    assert file.columns["pixels"] == Column((8, 6, 3), np.dtype(np.uint8))
    second = file.episode(1)
    assert np.array_equal(second["pixels"], data["pixels"][4:6]) and np.isnan(second["action"][-1]).all()
    assert set(file.episode(2, ["reward"])) == {"reward"}
    with pytest.raises(InputError, match=r"0 to 2, but .* 3"):
        file.episode(3)


@pytest.mark.parametrize("rows", [[3], [5, 4, 3, 10, 0], [[1, 1], [7, 1]], [], list(range(11)), [[2, 4], [6, 8]]])
def test_rows_have_the_requested_order_and_shape(tmp_path: Path, rows: list[Any]):
    file, data, asked = EpisodeFile(published(tmp_path / "a.h5")), columns(), np.array(rows, dtype=np.int64)
    for name in ("pixels", "reward"):
        found = file.rows(name, asked)
        assert found.dtype == data[name].dtype and np.array_equal(found, data[name][asked])


def test_missing_columns_and_rows_are_named(tmp_path: Path):
    file = EpisodeFile(published(tmp_path / "a.h5"))
    with pytest.raises(InputError, match=r"'pixel'.*'pixels'"):
        file.rows("pixel", np.array([0]))
    with pytest.raises(InputError, match=r"0 to 10, but .*-1 to 11"):
        file.rows("pixels", np.array([11, -1]))


def test_written_episodes_are_read_back_and_numbered(tmp_path: Path):
    first, data = EpisodeFile(published(tmp_path / "a.h5")), columns()
    for compressed in (True, False):
        path = tmp_path / f"{compressed}.h5"
        with EpisodeWriter(path, compressed) as writer:
            for number in (2, 0):  # renumbered in this file
                writer.append(first.episode(number))
            assert not path.exists()
        file, rows = EpisodeFile(path), np.r_[6:11, 0:4]
        assert file.lengths.tolist() == [5, 4] and file.offsets.tolist() == [0, 5]
        for name, values in data.items():
            assert np.array_equal(file.rows(name, np.arange(9)), values[rows], equal_nan=name == "action")
        assert file.rows("ep_idx", np.arange(9)).tolist() == [0] * 5 + [1] * 4
        assert file.rows("step_idx", np.arange(9)).tolist() == [*range(5), *range(4)]
    with h5py.File(tmp_path / "True.h5") as raw:
        assert {name: str(raw[name].dtype) for name in ("ep_len", "ep_offset", "ep_idx")} == {  # pyright: ignore
            "ep_len": "int32",
            "ep_offset": "int64",
            "ep_idx": "int32",
        }


@pytest.mark.parametrize(
    ("episodes", "message"),
    [
        ([], r"old\.h5"),
        ([{"a": np.zeros(3), "b": np.zeros(2)}], "episode 0.*3.*2"),
        ([{"a": np.zeros(0)}], "episode 0.*0"),
        ([{"a": np.zeros(3)}, {"a": np.zeros(3), "b": np.zeros(3)}], "Episode 1.*'b'"),
        ([{"a": np.zeros(3)}, {"a": np.zeros((3, 2))}], "'a'"),
        ([{"a": np.array(["x"])}], "'a'"),
    ],
)
def test_invalid_episodes_are_rejected_and_leave_no_file(tmp_path: Path, episodes: list[dict], message: str):
    (tmp_path / "old.h5").write_text("as it was")
    with pytest.raises(InputError, match=message), EpisodeWriter(tmp_path / "old.h5") as writer:
        for episode in episodes:
            writer.append(episode)
    assert [path.name for path in tmp_path.iterdir()] == ["old.h5"]
    assert (tmp_path / "old.h5").read_text() == "as it was"


def test_origin_is_stored(tmp_path: Path):
    about = {"world": {"kind": "rooms", "door": 0.1}, "seed": 3, "weight": float("inf")}
    with EpisodeWriter(tmp_path / "a.h5", about=about) as writer:
        writer.append({"a": np.zeros(3)})
    assert EpisodeFile(tmp_path / "a.h5").about == about | {"weight": "inf"}


@pytest.mark.parametrize("given", [None, "{", "[1]", 7])
def test_files_without_a_valid_origin_are_read(tmp_path: Path, given: Any):
    path = published(tmp_path / "a.h5")
    if given is not None:
        with h5py.File(path, "a") as file:
            file.attrs["jepatlas"] = given
    assert EpisodeFile(path).about == {} and len(EpisodeFile(path)) == 3


def test_damaged_column_is_named(tmp_path: Path):
    path = tmp_path / "a.h5"
    with EpisodeWriter(path) as writer:
        writer.append({"pixels": np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), np.uint8)})
    with h5py.File(path) as raw:
        chunk: Any = raw["pixels"].id.get_chunk_info(4)  # pyright: ignore
    whole = bytearray(path.read_bytes())
    whole[chunk.byte_offset : chunk.byte_offset + 200] = bytes(200)
    path.write_bytes(whole)
    file = EpisodeFile(path)
    assert file.rows("pixels", np.arange(4)).shape == (4, 64, 64, 3), "intact columns are still readable"
    for read in (lambda: file.rows("pixels", np.array([0, 4])), lambda: file.episode(0, ["pixels"])):
        with pytest.raises(InputError, match=r"'pixels' in .*a\.h5"):
            read()


def test_interrupted_writer_leaves_no_file(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt), EpisodeWriter(tmp_path / "new" / "a.h5") as writer:
        writer.append({"a": np.zeros(3)})
        raise KeyboardInterrupt
    assert list((tmp_path / "new").iterdir()) == []


def test_unwritable_path_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"a\.h5"), EpisodeWriter(tmp_path / "file" / "a.h5"):
        pass


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("ours", [True, False])
def test_truncated_file_is_rejected(tmp_path: Path, share: float, ours: bool):
    path = published(tmp_path / "a.h5")
    if ours:
        with EpisodeFile(path) as file, EpisodeWriter(tmp_path / "b.h5") as writer:
            writer.append(file.episode(0))
        path = tmp_path / "b.h5"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(InputError, match=rf"{path.name} cannot be read"):
        EpisodeFile(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ep_len": None}, "'ep_len'.* action, ep_idx, ep_offset, pixels, reward"),
        ({"ep_offset": None}, "'ep_offset'"),
        ({"reward": np.zeros(9)}, "'reward' .*9.*11 rows"),
        ({"ep_len": np.array([4, 2, 6])}, "Episode 2 .*ep_offset 6 and ep_len 6, but .* 11 rows"),
        ({"ep_len": np.array([4, 0, 5])}, "Episode 1 .*ep_len 0"),
        ({"ep_offset": np.array([0, 3, 6])}, "Episodes 0 and 1 "),
        ({"ep_offset": np.array([0, 4])}, "3 .*ep_len and 2 .*ep_offset"),
        ({"ep_len": np.array([4.0, 2.0, 5.0])}, "'ep_len' of .*float64"),
        (dict.fromkeys([*columns(), "ep_idx"]), r"a\.h5 has no"),
    ],
)
def test_inconsistent_files_are_rejected(tmp_path: Path, changes: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        EpisodeFile(published(tmp_path / "a.h5", **changes))


def test_episodes_may_be_stored_in_any_order(tmp_path: Path):
    path = published(tmp_path / "a.h5", ep_len=np.array([5, 2]), ep_offset=np.array([6, 1]))
    assert np.array_equal(EpisodeFile(path).episode(1)["reward"], [1, 2])


def test_other_files_are_rejected(tmp_path: Path):
    (tmp_path / "text.h5").write_text("pixels, action")
    for name, message in (("text.h5", r"text\.h5 .*HDF5"), ("gone.h5", r"gone\.h5")):
        with pytest.raises(InputError, match=message):
            EpisodeFile(tmp_path / name)


def test_missing_compression_filter_is_named(tmp_path: Path):
    path = published(tmp_path / "a.h5", pixels=None)
    with h5py.File(path, "a") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((11, 4))
        made.set_filter(32999, h5py.h5z.FLAG_OPTIONAL)  # an unassigned filter number
        h5py.h5d.create(file.id, b"pixels", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((11, 4)), made)
    with pytest.raises(InputError, match=r"'pixels' of .* 32999.*pip install hdf5plugin"):
        EpisodeFile(path)


def sums(file: EpisodeFile) -> list[int]:
    return [int(file.episode(number)["pixels"].sum()) for number in range(len(file))]


class Frames(Dataset):
    def __init__(self, file: EpisodeFile):
        self.file = file

    def __len__(self) -> int:
        return 11

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.from_numpy(self.file.rows("pixels", np.array(row)))


def test_open_file_can_be_pickled_and_read_in_another_process(tmp_path: Path):
    file, data = EpisodeFile(published(tmp_path / "a.h5")), columns()
    expected = sums(file)  # opens the file
    assert sums(pickle.loads(pickle.dumps(file))) == expected
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        read: Callable[..., Any] = EpisodeFile.rows
        assert np.array_equal(pool.submit(read, file, "pixels", np.arange(11)).result(), data["pixels"])
    file.close()
    assert sums(file) == expected  # reopened


def test_forked_loaders_open_their_own_handles(tmp_path: Path):
    file, data = EpisodeFile(published(tmp_path / "a.h5")), columns()
    sums(file)
    for _ in range(2):
        loader = DataLoader(Frames(file), batch_size=4, num_workers=2, multiprocessing_context="fork")
        assert np.array_equal(torch.cat(list(loader)).numpy(), data["pixels"])
