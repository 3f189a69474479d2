"""Images in the IDX format of MNIST, from small files written byte by byte."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.data.images import IDXImages, fashion_mnist_folder


def write(path: Path, array: np.ndarray) -> None:
    data = struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture
def images(tmp_path: Path) -> np.ndarray:
    found = np.random.default_rng(0).integers(0, 256, (5, 4, 6), dtype=np.uint8)
    for prefix, part, ending in (("train", slice(0, 3), ".gz"), ("t10k", slice(3, 5), "")):
        write(tmp_path / f"{prefix}-images-idx3-ubyte{ending}", found[part])
        write(tmp_path / f"{prefix}-labels-idx1-ubyte{ending}", np.arange(5, dtype=np.uint8)[part])
    return found


def test_rows_are_the_training_images_and_then_the_test_images(tmp_path: Path, images: np.ndarray):
    table = IDXImages.read(tmp_path)
    assert table.column("label").tolist() == list("01234")
    assert table.column("split").tolist() == ["train"] * 3 + ["test"] * 2
    assert table.column("state")[3] == "test-00000"
    for row, image in enumerate(images):
        np.testing.assert_array_equal(table.image(row, mode="grey"), image)
        np.testing.assert_array_equal(table.image(row), np.repeat(image[..., None], 3, 2))
    some = table.only(np.array([4, 0]))
    np.testing.assert_array_equal(some.image(0, mode="grey"), images[4])
    assert some.image(1, size=(3, 2)).shape == (2, 3, 3) and some.source(0) == table.source(4)


def test_damaged_files_are_refused(tmp_path: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "t10k-images-idx3-ubyte"
    whole = file.read_bytes()
    for data, words in ((whole[:-1], "cut short"), (whole[:9], "not an IDX file"), (b"\1" + whole[1:], "not an IDX")):
        file.write_bytes(data)
        with pytest.raises(InputError, match=words):
            IDXImages.read(tmp_path)
    file.write_bytes(whole)
    write(tmp_path / "t10k-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(InputError, match=r"2 images, but .* 3 labels"):
        IDXImages.read(tmp_path)
    monkeypatch.setenv("JEPATLAS_FASHION_MNIST", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="dataset-fashion-mnist"):
        fashion_mnist_folder()
