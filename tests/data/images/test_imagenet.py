from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.data.images import read_imagenet


def write(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 5, 3), number, np.uint8)).save(folder / name)
    return folder


TRAIN = [
    "train/n01440764/n01440764_10026.JPEG",
    "train/n01440764/n01440764_18.JPEG",
    "train/n01443537/n01443537_2.JPEG",
]
VAL = ["val/n01440764/ILSVRC2012_val_00000293.JPEG"]


def test_labels_are_folders_and_states_are_images(tmp_path: Path):
    table = read_imagenet(write(tmp_path, TRAIN + VAL))
    assert table.column("path").tolist() == TRAIN
    assert table.labels().tolist() == ["n01440764", "n01440764", "n01443537"]
    assert table.column("state").tolist() == ["n01440764_10026", "n01440764_18", "n01443537_2"]
    assert table.images(np.array([2]), size=(3, 3)).shape == (1, 3, 3, 3)
    held = read_imagenet(tmp_path, "val")
    assert held.column("state").tolist() == ["ILSVRC2012_val_00000293"] and held.column("split").tolist() == ["val"]


def test_pair_requires_two_pipelines(tmp_path: Path):
    table = read_imagenet(write(tmp_path, TRAIN))
    with pytest.raises(InputError, match=r"view.*'image',.*pair.*pipelines"):
        table.pairs("A", "B")


def test_other_layouts_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match="train"):
        read_imagenet(tmp_path)
    write(tmp_path, ["val/ILSVRC2012_val_00000293.JPEG"])
    with pytest.raises(InputError, match=r"val_00000293\.JPEG"):
        read_imagenet(tmp_path, "val")
    with pytest.raises(InputError, match=" val"):
        read_imagenet(tmp_path)
    write(tmp_path, ["train/a/1.png", "train/b/1.png"])
    with pytest.raises(InputError, match=r"1 .*'1'"):
        read_imagenet(tmp_path)


def test_symlinked_folders_are_followed(tmp_path: Path):
    """Symlinks to `train`, a class and an image are followed; a link to a parent folder is not a class."""
    write(tmp_path / "far", TRAIN)
    (tmp_path / "here" / "train").mkdir(parents=True)
    (tmp_path / "here" / "train" / "n01440764").symlink_to(tmp_path / "far" / "train" / "n01440764")
    (tmp_path / "here" / "train" / "n01443537").mkdir()
    (tmp_path / "here" / TRAIN[2]).symlink_to(tmp_path / "far" / TRAIN[2])
    (tmp_path / "here" / "train" / "up").symlink_to("..")
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "train").symlink_to("../far/train")
    for name in ("here", "whole"):
        table = read_imagenet(tmp_path / name)
        assert table.column("path").tolist() == TRAIN and table.labels().tolist()[0] == "n01440764"
        near = [abs(int(image[0, 0, 0]) - number) <= 1 for number, image in enumerate(table.images(np.arange(3)))]
        assert all(near)
