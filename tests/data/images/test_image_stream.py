"""Streams of crops: epochs, steps and processes, from the table on disk to the batch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError
from jepatlas.data import Prefetched
from jepatlas.data.images import CropPlan, ImageStream, MultiViewTable, Shuffle, decode

NONE = CropPlan("one", ("none",))


def photos(count: int = 20, side: int = 16) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def numbered(count: int) -> np.ndarray:
    """Every pixel of image i equals i."""
    return np.broadcast_to(np.arange(count, dtype=np.uint8)[:, None, None, None], (count, 4, 4, 3))


def test_each_epoch_shows_every_image_once_in_a_new_order():
    stream = ImageStream(numbered(20), 8, seed=0, plan=NONE)
    seen = torch.cat([(stream(step).x[:, 0, 0, 0] * 255).round() for step in range(10)]).reshape(4, 20)
    assert (seen.sort(1).values == torch.arange(20)).all()
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[0], torch.arange(20.0))
    assert (seen.flatten()[8:16] == torch.as_tensor(stream.rows_of(1))).all()


def test_only_selected_rows_are_used():
    rows = np.array([3, 5, 7, 11])
    stream = ImageStream(numbered(20), 4, seed=0, plan=NONE, rows=rows)
    assert stream.count == 4
    for step in range(3):
        assert sorted((stream(step).x[:, 0, 0, 0] * 255).round().tolist()) == rows.tolist()


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("crops", ["one", "two", "multi"])
def test_process_slices_form_the_joint_batch(crops: Any, world_size: int):
    plan = CropPlan(crops, ("A", "B"), local_size=(8, 8))
    joint = ImageStream(photos(), 8, 7, plan)(5)
    parts = [ImageStream(photos(), 8, 7, plan, rank=r, world_size=world_size)(5) for r in range(world_size)]
    for found, whole in zip(zip(*(part.all for part in parts), strict=True), joint.all, strict=True):
        assert torch.equal(torch.cat(found), whole)


def test_batch_depends_only_on_its_step():
    stream: Batches = ImageStream(photos(), 8, seed=0)
    first, again, other = stream(3), stream(3), stream(4)
    assert torch.equal(first.x, again.x) and torch.equal(first.others[0], again.others[0])
    assert not torch.equal(first.x, other.x) and not torch.equal(first.x, first.others[0])
    assert not torch.equal(first.x, ImageStream(photos(), 8, seed=1)(3).x)
    assert not torch.equal(first.x, ImageStream(photos(), 8, seed=0, name="another")(3).x)


@pytest.mark.parametrize("threads", [1, 3])
def test_prefetching_threads_do_not_change_batches(threads: int):
    plain = ImageStream(photos(), 8, seed=0)
    ahead = Prefetched(plain, ahead=4, threads=threads)
    for step in (0, 1, 2, 3, 9, 10, 1):
        assert torch.equal(ahead(step).x, plain(step).x)
    with pytest.raises(InputError, match=r"threads.*0"):
        Prefetched(plain, threads=0)


@pytest.mark.parametrize(
    ("plan", "shapes"),
    [
        (CropPlan("one"), [(16, 16)]),
        (CropPlan("two"), [(16, 16)] * 2),
        (CropPlan("multi", local=3, local_size=(8, 6)), [(16, 16)] * 2 + [(8, 6)] * 3),
    ],
)
def test_crop_shapes_match_the_plan(plan: CropPlan, shapes: list[tuple[int, int]]):
    crops = ImageStream(photos(), 4, 0, plan)(0)
    assert [tuple(crop.shape) for crop in crops.all] == [(4, 3, *shape) for shape in shapes]
    assert all(crop.dtype == torch.float32 and crop.min() >= 0 and crop.max() <= 1 + 1e-6 for crop in crops.all)


def test_local_crops_cover_a_small_area():
    """On a horizontal ramp, the range of values in a crop is the width it covers."""
    ramp = np.broadcast_to(np.arange(0, 256, 4, dtype=np.uint8)[:, None], (8, 64, 64, 3))
    plan = CropPlan("multi", ("plain",), local=2, local_size=(32, 32), local_scale=(0.05, 0.1))
    _, second, *local = ImageStream(ramp, 8, 0, plan)(0).all
    spans = [(crop.amax((1, 2, 3)) - crop.amin((1, 2, 3))).max() for crop in (second, *local)]
    assert spans[0] > 0.6 and max(spans[1:]) < 0.1**0.5 * (4 / 3) ** 0.5 + 0.02


def test_large_crops_cover_the_requested_area():
    ramp = np.broadcast_to(np.arange(0, 256, 4, dtype=np.uint8)[:, None], (8, 64, 64, 3))
    first, *_ = ImageStream(ramp, 8, 0, CropPlan("two", ("plain",), scale=(0.05, 0.1)))(0).all
    assert (first.amax((1, 2, 3)) - first.amin((1, 2, 3))).max() < 0.1**0.5 * (4 / 3) ** 0.5 + 0.02
    whole, *_ = ImageStream(ramp, 8, 0, CropPlan("two", ("none",), scale=(0.05, 0.1)))(0).all
    assert (whole.amax((1, 2, 3)) - whole.amin((1, 2, 3))).min() > 0.9  # a pipeline that does not crop


def test_pipelines_alternate():
    """`plain` keeps colours; `B` inverts or greys some images."""
    red = np.zeros((64, 8, 8, 3), np.uint8)
    red[..., 0] = 255
    first, second = ImageStream(red, 64, 0, CropPlan("two", ("plain", "B")))(0).all
    assert (first == torch.tensor([1.0, 0, 0])[:, None, None]).all()
    assert not torch.allclose(first, second)


def test_patch_shuffling_precedes_augmentation():
    images = photos()
    plain, shuffled = (ImageStream(images, 8, 0, NONE, shuffle=shuffle) for shuffle in (None, Shuffle(patch=4)))
    rows = plain.rows_of(2)
    expected = torch.from_numpy(Shuffle(patch=4)(images[rows], rows)).permute(0, 3, 1, 2).float() / 255
    assert torch.allclose(shuffled(2).x, expected) and not torch.allclose(plain(2).x, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 21}, "batch.*21.*20.*images"),
        ({"batch_size": 9, "world_size": 2}, "positive multiple of the 2 processes"),
        ({"rows": np.array([1, 20] * 4)}, "images.*0.*19,.*20"),
        ({"images": np.zeros((20, 4, 4, 3))}, "float64 of shape"),
    ],
)
def test_errors_name_the_argument(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        ImageStream(**{"images": photos(), "batch_size": 8, "seed": 0} | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"crops": "three"}, "'three'"),
        ({"pipelines": ()}, "pipelines"),
        ({"pipelines": ("C",)}, "no augmentation pipeline 'C'"),
        ({"local": 0}, "local .*0"),
    ],
)
def test_impossible_plans_are_rejected(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        CropPlan(**options)


@pytest.mark.data
def test_real_table_to_batch(tmp_path: Path):
    table = MultiViewTable.read(Path(os.environ["JEPATLAS_DATA"]) / "eth80")
    table = table.only(np.flatnonzero(np.isin(table.column("group"), ["apple1", "cup1"])))
    decoded = decode(table, (32, 32), folder=tmp_path)
    assert decoded.images.shape == (82, 32, 32, 3) and decoded.message == ""
    rows = decoded.table.rows_of_view("90")
    crops = ImageStream(decoded.images, len(rows), 0, rows=rows)(0)
    assert crops.x.shape == crops.others[0].shape == (len(rows), 3, 32, 32)
