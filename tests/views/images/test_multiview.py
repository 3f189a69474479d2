import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jepatlas.base.errors import InputError
from jepatlas.views.images import MultiViewTable

HEAD = "path,state,view,label,group"


def write_table(folder: Path, lines: list[str], head: str = HEAD) -> Path:
    (folder / "views.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


def two_views(folder: Path) -> Path:
    """Three states; the last one is seen from the left only. The image of state s is s everywhere, +100 at right."""
    lines = []
    for state, views in enumerate([("left", "right"), ("right", "left"), ("left",)]):
        for view in views:
            name = f"{state}-{view}.png"
            Image.fromarray(np.full((4, 6), state + 100 * (view == "right"), np.uint8)).save(folder / name)
            lines.append(f"{name},s{state},{view},class{state % 2},g{state}")
    return write_table(folder, lines)


def test_pairs_are_the_states_that_both_views_show(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    left, right = table.pairs("left", "right")
    assert table.column("state")[left].tolist() == table.column("state")[right].tolist() == ["s0", "s1"]
    grey = table.images(left, mode="grey")
    assert grey.shape == (2, 4, 6) and grey[:, 0, 0].tolist() == [0, 1]
    assert table.images(right, mode="rgb", size=(3, 2)).shape == (2, 2, 3, 3)
    assert (table.images(right, mode="grey")[:, 0, 0] == grey[:, 0, 0] + 100).all()


def test_images_of_different_sizes_need_one(tmp_path: Path):
    folder = two_views(tmp_path)
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(folder / "0-left.png")
    table = MultiViewTable.read(folder)
    with pytest.raises(InputError, match="2 different sizes"):
        table.images(np.arange(3))
    assert table.images(np.arange(3), size=(4, 4)).shape == (3, 4, 4, 3)


@pytest.mark.parametrize(
    ("lines", "head", "message"),
    [
        ([], HEAD, "no rows"),
        (["a.png,s"], "path,state", "view is missing"),
        (["a.png,s,left,c"], HEAD, "line 2 has not as many cells"),
        (["a.png,s,left,c,g", "b.png,s,left,c,g"], HEAD, "lines 2 and 3 both show state 's' from view 'left'"),
    ],
)
def test_broken_tables_are_refused(tmp_path: Path, lines: list[str], head: str, message: str):
    with pytest.raises(InputError, match=message):
        MultiViewTable.read(write_table(tmp_path, lines, head))


def test_missing_broken_and_outside_images_are_refused(tmp_path: Path):
    inside = tmp_path / "data"
    inside.mkdir()
    (inside / "broken.png").write_bytes(b"not an image")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "secret.png")
    lines = ["gone.png,a,left,c,g", "broken.png,b,left,c,g", "../secret.png,c,left,c,g"]
    table = MultiViewTable.read(write_table(inside, lines))
    for row, message in enumerate(["no such image", "could not be read", "outside"]):
        with pytest.raises(InputError, match=message):
            table.images(np.array([row]))


def test_views_without_a_common_state_and_misspelt_ones_are_refused(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,right,c,g"]))
    with pytest.raises(InputError, match="no state in common"):
        table.pairs("left", "right")
    with pytest.raises(InputError, match="Did you mean 'left'"):
        table.pairs("letf", "right")
    with pytest.raises(InputError, match="no column 'lable'"):
        table.column("lable")


@pytest.mark.data
def test_real_tables():
    data = Path(os.environ["JEPATLAS_DATA"])
    driving = MultiViewTable.read(data / "driving")
    left, _ = driving.pairs("left", "right")
    assert len(left) == 3000 and driving.images(left[:5], mode="grey").shape == (5, 32, 112)
    objects = MultiViewTable.read(data / "eth80" / "views.csv")
    first, second = objects.pairs("0", "90")
    assert (objects.column("group")[first] == objects.column("group")[second]).all()


def test_a_single_view_has_no_pairs(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,left,c,g"]))
    with pytest.raises(InputError, match="All rows have the view 'left', but a pair needs two views"):
        table.pairs("left", "right")
    assert table.rows_of_view("left").tolist() == [0, 1]


def test_states_that_one_view_misses_are_counted(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    assert table.views == ["left", "right"]
    assert table.unpaired("left", "right") == (1, 0) and table.unpaired("right", "left") == (0, 1)
    assert table.only(np.array([0, 1])).unpaired("left", "right") == (0, 0)


def test_a_part_of_a_table_has_its_images(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    part = table.only(np.array([4, 2]))
    assert len(part) == 2 and part.column("state").tolist() == ["s2", "s1"]
    assert part.images(np.array([0, 1]), mode="grey")[:, 0, 0].tolist() == [2, 101]


def test_labels_that_a_probe_misses_are_named(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,left,,g", "c.png,u,left,d,g"]))
    assert table.labels(np.array([2, 0])).tolist() == ["d", "c"]
    assert table.labels(column="group").tolist() == ["g"] * 3
    with pytest.raises(InputError, match="'label' is empty in 1 of 3 rows; the first is row 1, state 't'"):
        table.labels()
    bare = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left"], "path,state,view"))
    with pytest.raises(InputError, match="A probe needs labels, but the table has no column 'label'"):
        bare.labels()


def test_folders_of_images_are_views(tmp_path: Path):
    for name in ("front/a.png", "front/deep/b.PNG", "rear/a.jpg", "rear/c.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), len(name), np.uint8)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    table = MultiViewTable.from_folder(tmp_path)
    front, rear = table.pairs("front", "rear")
    assert table.column("state")[front].tolist() == ["a"] and table.unpaired("front", "rear") == (1, 1)
    assert table.images(rear, mode="grey")[0, 0, 0] == len("rear/a.jpg")
    single = MultiViewTable.from_folder(tmp_path / "front")
    assert single.column("view").tolist() == ["front", "deep"] and single.column("state").tolist() == ["a", "b"]


def test_folders_without_images_and_with_doubtful_ones_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="has no images"):
        MultiViewTable.from_folder(tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        MultiViewTable.from_folder(tmp_path / "gone")
    (tmp_path / "front").mkdir()
    for name in ("a.jpg", "a.png"):
        (tmp_path / "front" / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"front/a.jpg and front/a.png both show state 'a' from view 'front'"):
        MultiViewTable.from_folder(tmp_path)
