"""smallNORB's three binary files in the published format, written byte by byte."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.data.images import CropPlan, ImageStream, SmallNORB, decode, official_split
from jepatlas.recipes import SmallNORBFiles, VisionRecipe, read_images

NAMES = {"training": "smallnorb-5x46789x9x18x6x2x96x96-training", "testing": "smallnorb-5x01235x9x18x6x2x96x96-testing"}
INSTANCES = {"training": (4, 6), "testing": (0, 1)}
AZIMUTHS = (0, 4, 16)  # in steps of 10°
SIDE = 12


def matrix(magic: int, values: np.ndarray) -> bytes:
    shape = [*values.shape] + [1] * (3 - values.ndim)
    return struct.pack(f"<Ii{len(shape)}i", magic, values.ndim, *shape) + values.tobytes()


def factors(split: str) -> np.ndarray:
    """Category, instance, elevation, azimuth and lighting of each stereo pair."""
    return np.array(
        [
            (c, i, e, a, light)
            for c in (0, 4)
            for i in INSTANCES[split]
            for e in (0, 8)
            for a in AZIMUTHS
            for light in (0, 5)
        ],
        np.int32,
    )


def pixels(split: str) -> np.ndarray:
    count = len(factors(split))
    return np.random.default_rng(count + len(split)).integers(0, 256, (count, 2, SIDE, SIDE), np.uint8)


def write(folder: Path, split: str, zipped: bool = False) -> None:
    given = factors(split)
    for kind, data in {
        "dat": matrix(0x1E3D4C55, pixels(split)),
        "cat": matrix(0x1E3D4C54, given[:, 0].copy()),
        "info": matrix(0x1E3D4C54, given[:, 1:].copy()),
    }.items():
        name = f"{NAMES[split]}-{kind}.mat"
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)


@pytest.mark.parametrize("zipped", [False, True])
def test_rows_are_left_and_right_images_of_each_pair(tmp_path: Path, zipped: bool):
    write(tmp_path, "training", zipped)
    table, given = SmallNORB.read(tmp_path, "training"), factors("training")
    assert len(table) == 2 * len(given) and isinstance(table.stored[0].base, np.memmap) != zipped
    assert table.column("camera").tolist() == ["left", "right"] * len(given)
    names = ["animal", "human", "airplane", "truck", "car"]
    for row in (0, 1, 17, len(table) - 1):
        category, instance, elevation, azimuth, light = given[row // 2].tolist()
        found = {name: values[row] for name, values in table.columns.items()}
        assert found["label"] == names[category] and found["group"] == f"{names[category]}-{instance}"
        assert found["view"] == found["azimuth"] == str(10 * azimuth)
        assert found["elevation"] == str(30 + 5 * elevation) and found["lighting"] == str(light)
    grey = table.images(np.arange(len(table)), mode="grey")
    assert np.array_equal(grey, pixels("training").reshape(-1, SIDE, SIDE))
    assert (table.images(np.array([3])) == grey[3][None, ..., None]).all()
    assert table.images(np.array([3]), size=(6, 5)).shape == (1, 5, 6, 3)


def test_published_pairs_differ_only_in_azimuth(tmp_path: Path):
    write(tmp_path, "training")
    table = SmallNORB.read(tmp_path, "training")
    first, second = table.pairs("0", "160")
    assert len(first) == 2 * 2 * 2 * 2 * 2  # category, instance, elevation, lighting, camera
    for name in ("group", "instance", "elevation", "lighting", "camera", "label"):
        assert (table.column(name)[first] == table.column(name)[second]).all()
    assert set(table.column("azimuth")[first]) == {"0"} and set(table.column("azimuth")[second]) == {"160"}


def test_cameras_may_be_the_views(tmp_path: Path):
    write(tmp_path, "training")
    left, right = SmallNORB.read(tmp_path, "training", views="camera").pairs("left", "right")
    assert (right == left + 1).all() and len(left) == len(factors("training"))


def test_official_split_is_by_instance(tmp_path: Path):
    for split in NAMES:
        write(tmp_path, split)
    table = SmallNORB.read(tmp_path)
    fit, score = official_split(table, "testing")
    assert set(table.column("instance")[fit]) == {"4", "6"} and set(table.column("instance")[score]) == {"0", "1"}
    assert np.array_equal(table.images(score, mode="grey"), pixels("testing").reshape(-1, SIDE, SIDE))
    assert np.array_equal(table.only(score).image(5, mode="grey"), pixels("testing").reshape(-1, SIDE, SIDE)[5])


def test_official_instances_are_held_out_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for split in NAMES:
        write(tmp_path, split)

    def held(official: bool, view: str, split: int) -> set[str]:
        seen = read_images(
            VisionRecipe(images=SmallNORBFiles(str(tmp_path), official=official), view=view, split=split, size=8)
        )
        instances = seen.table.column("group")
        assert not set(instances[seen.held]) & set(instances[seen.learnt])
        return set(instances[seen.held].tolist())

    official = {f"{category}-{instance}" for category in ("animal", "car") for instance in INSTANCES["testing"]}
    assert held(True, "0", 0) == held(True, "160", 1) == official
    assert len(held(False, "0", 0)) == 2 != len(official)  # a fifth of eight instances


def test_images_are_read_from_the_archive_and_resized(tmp_path: Path):
    write(tmp_path, "training")
    table = SmallNORB.read(tmp_path, "training")
    rows = table.only(table.rows_of_view("160")).places
    stream = ImageStream(table.stored[0], 4, 0, CropPlan("one", ("none",)), rows=rows)
    expected = pixels("training").reshape(-1, SIDE, SIDE)[stream.rows_of(1)]
    assert np.array_equal((stream(1).x[:, 1] * 255).round().numpy(), expected)
    decoded = decode(table, (8, 8), folder=tmp_path / "cache")
    assert decoded.images.shape == (len(table), 8, 8, 3) and not decoded.skipped


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("dat", lambda data: b"\x54" + data[1:], "0x1E3D4C54.*32-bit"),
        ("dat", lambda data: b"PK\x03\x04" + data[4:], "0x04034B50.*0x1E3D4C55"),
        ("dat", lambda data: data[:-7], "13824.*13817"),
        ("dat", lambda data: data + b"x", "13824 .*13825"),
        ("dat", lambda data: data[:5], "short"),
        ("info", lambda data: data[:12], "header"),
        ("cat", lambda data: matrix(0x1E3D4C54, np.zeros(3, np.int32)), r"48 stereo pairs, but .* the shape \(3,\)"),
        ("cat", lambda data: matrix(0x1E3D4C54, np.full(48, 7, np.int32)), "pair 0 has category 7"),
        ("dat", lambda data: matrix(0x1E3D4C55, np.zeros((48, 3, 2, 2), np.uint8)), r"\(pairs, 2, height, width\)"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_invalid_files_are_rejected(tmp_path: Path, kind: str, change, message: str, zipped: bool):
    write(tmp_path, "training", zipped)
    path = tmp_path / (f"{NAMES['training']}-{kind}.mat" + (".gz" if zipped else ""))
    data = path.read_bytes()
    path.write_bytes(gzip.compress(change(gzip.decompress(data))) if zipped else change(data))
    with pytest.raises(InputError, match=message):
        SmallNORB.read(tmp_path, "training")


def test_truncated_archives_missing_files_and_unknown_splits_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"training-dat.mat"):
        SmallNORB.read(tmp_path, "training")
    with pytest.raises(InputError, match="'train'"):
        SmallNORB.read(tmp_path, "train")
    write(tmp_path, "training", zipped=True)
    path = tmp_path / f"{NAMES['training']}-dat.mat.gz"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(InputError, match=r"cannot be read"):
        SmallNORB.read(tmp_path, "training")
