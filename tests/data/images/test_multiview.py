import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.data.images import MultiViewTable

HEAD = "path,state,view,label,group"


def write_table(folder: Path, lines: list[str], head: str = HEAD) -> Path:
    (folder / "views.csv").write_text("\n".join([head, *lines]) + "\n")
    return folder


def two_views(folder: Path) -> Path:
    """Three states, the last visible from the left only. Pixels equal the state, plus 100 in the right view."""
    lines = []
    for state, views in enumerate([("left", "right"), ("right", "left"), ("left",)]):
        for view in views:
            name = f"{state}-{view}.png"
            Image.fromarray(np.full((4, 6), state + 100 * (view == "right"), np.uint8)).save(folder / name)
            lines.append(f"{name},s{state},{view},class{state % 2},g{state}")
    return write_table(folder, lines)


def test_pairs_are_states_present_in_both_views(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    left, right = table.pairs("left", "right")
    assert table.column("state")[left].tolist() == table.column("state")[right].tolist() == ["s0", "s1"]
    grey = table.images(left, mode="grey")
    assert grey.shape == (2, 4, 6) and grey[:, 0, 0].tolist() == [0, 1]
    assert table.images(right, mode="rgb", size=(3, 2)).shape == (2, 2, 3, 3)
    assert (table.images(right, mode="grey")[:, 0, 0] == grey[:, 0, 0] + 100).all()


def test_images_of_different_sizes_require_a_size(tmp_path: Path):
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
        (["a.png,s,left,c"], HEAD, "line.*2"),
        (["a.png,s,left,c,g", "b.png,s,left,c,g"], HEAD, "lines 2 and 3 .*'s'.*'left'"),
    ],
)
def test_invalid_tables_are_rejected(tmp_path: Path, lines: list[str], head: str, message: str):
    with pytest.raises(InputError, match=message):
        MultiViewTable.read(write_table(tmp_path, lines, head))


def test_missing_broken_and_outside_images_are_rejected(tmp_path: Path):
    inside = tmp_path / "data"
    inside.mkdir()
    (inside / "broken.png").write_bytes(b"not an image")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "secret.png")
    lines = ["gone.png,a,left,c,g", "broken.png,b,left,c,g", "../secret.png,c,left,c,g"]
    table = MultiViewTable.read(write_table(inside, lines))
    for row, message in enumerate(["not found", "cannot be read", "outside"]):
        with pytest.raises(InputError, match=message):
            table.images(np.array([row]))


def test_disjoint_and_misspelt_views_are_rejected(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,right,c,g"]))
    with pytest.raises(InputError, match="state"):
        table.pairs("left", "right")
    with pytest.raises(InputError, match="'left'"):
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


def test_single_view_has_no_pairs(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,left,c,g"]))
    with pytest.raises(InputError, match=r"rows.*view.*'left',.*pair"):
        table.pairs("left", "right")
    assert table.rows_of_view("left").tolist() == [0, 1]


def test_states_missing_in_one_view_are_counted(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    assert table.views == ["left", "right"]
    assert table.unpaired("left", "right") == (1, 0) and table.unpaired("right", "left") == (0, 1)
    assert table.only(np.array([0, 1])).unpaired("left", "right") == (0, 0)


def test_selected_rows_keep_their_images(tmp_path: Path):
    table = MultiViewTable.read(two_views(tmp_path))
    part = table.only(np.array([4, 2]))
    assert len(part) == 2 and part.column("state").tolist() == ["s2", "s1"]
    assert part.images(np.array([0, 1]), mode="grey")[:, 0, 0].tolist() == [2, 101]


def test_missing_probe_labels_are_named(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "b.png,t,left,,g", "c.png,u,left,d,g"]))
    assert table.labels(np.array([2, 0])).tolist() == ["d", "c"]
    assert table.labels(column="group").tolist() == ["g"] * 3
    with pytest.raises(InputError, match=r"'label'.*\b1 of 3\b.*row 1.*'t'"):
        table.labels()
    bare = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left"], "path,state,view"))
    with pytest.raises(InputError, match=r"column.*'label'"):
        bare.labels()


def test_folders_are_read_as_views(tmp_path: Path):
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


def test_empty_and_ambiguous_folders_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"\.png"):
        MultiViewTable.from_folder(tmp_path)
    with pytest.raises(InputError, match="gone"):
        MultiViewTable.from_folder(tmp_path / "gone")
    (tmp_path / "front").mkdir()
    for name in ("a.jpg", "a.png"):
        (tmp_path / "front" / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"front/a\.jpg.*front/a\.png.*'a'.*'front'"):
        MultiViewTable.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"views\.csv.*CSV.*UTF-8.*line"),
        (b"\xef\xbb\xbf", r"views\.csv is empty, but a multi-view table is"),
        (b"\npath,state,view\na.png,s,left\n", r"views\.csv.*line,"),
        (b"path,state,view\n", r"views\.csv.*rows"),
        ("path,state,view\nü.png,s,left\n".encode("latin-1"), r"views\.csv.*UTF-8.*CSV"),
        ("path,state,view\na.png,s,left\n".encode("utf-16"), r"views\.csv.*UTF-8.*CSV"),
        ("path,state,view\na.png,s,left\n".encode("utf-16-le"), r"views\.csv: line 1 has a NUL byte, but a multi-view"),
        (b"path,state,view\na.png,s\0,left\n", r"views\.csv: line 2 has a NUL byte, but a multi-view table is"),
        (
            b"path,state,view\na.png,s,left\n" + b"b" * 140_000 + b",t,left\n",
            r"views\.csv:.*line.*3",
        ),
        (b'path,state,view\na.png,s,"left\n' + 50_000 * b"b,t\n", r"line.*2"),
    ],
)
def test_files_that_are_not_tables_are_rejected(tmp_path: Path, data: bytes, message: str):
    (tmp_path / "views.csv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        MultiViewTable.read(tmp_path)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif", "a.bmp"])
def test_image_given_as_table_is_rejected(tmp_path: Path, name: str):
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 20), np.uint8)).save(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}\b.*UTF-8"):
        MultiViewTable.read(tmp_path / name)


def test_csv_saved_by_excel_is_read(tmp_path: Path):
    text = "\r\n".join(["path,state,view,label", "ü.png,s,left,c", "", "b.png,t,left,d"]) + "\r\n"
    (tmp_path / "views.csv").write_text(text, encoding="utf-8-sig", newline="")
    table = MultiViewTable.read(tmp_path)
    assert list(table.columns) == ["path", "state", "view", "label"]
    assert table.column("path").tolist() == ["ü.png", "b.png"] and table.labels().tolist() == ["c", "d"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b.png,,left,c,g", r"column.*'state'.*1.*2.*rows;.*row.*1,.*line.*4\."),
        ("b.png,s,,c,g", r"column.*'view'.*1.*2.*rows;.*row.*1,.*line.*4\."),
        ("b.png,t, ,c,g", "'view'.* 1 of 2 .*row 1, line 4"),
        (
            "b.png,t,left,c,",
            r"column.*'group'.*1.*2.*rows;.*row.*1,.*line.*4\..*row",
        ),
        ("b.png,t,left,c", "line.*4"),
        ("a.png,s,left,c,g", "lines 2 and 4 .*'s'.*'left'"),
    ],
)
def test_empty_cells_are_named_by_row_and_line(tmp_path: Path, line: str, message: str):
    """Empty lines are not rows, but they count in line numbers."""
    with pytest.raises(InputError, match=message):
        MultiViewTable.read(write_table(tmp_path, ["a.png,s,left,c,g", "", line]))


def test_empty_group_and_label_columns_are_ignored(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, ["a.png,s,left, ,", "b.png,t,left,, "]))
    assert "group" not in table.columns
    with pytest.raises(InputError, match=r"'label'.*\b2 of 2\b.*row 0.*'s'"):
        table.labels()


def test_row_without_a_path_is_rejected_when_decoded(tmp_path: Path):
    table = MultiViewTable.read(write_table(tmp_path, [",s,left,c,g"]))
    with pytest.raises(InputError, match=r"state.*'s'.*view.*'left'"):
        table.image(0)


def test_unreadable_images_are_rejected(tmp_path: Path):
    (tmp_path / "round.png").symlink_to("round.png")
    (tmp_path / "nowhere.png").symlink_to("gone.png")
    names = ["round.png", "nowhere.png", f"{'long' * 100}.png"]
    table = MultiViewTable.read(write_table(tmp_path, [f"{name},{n},left,c,g" for n, name in enumerate(names)]))
    for row, message in enumerate(["Too many levels", "not found", "File name too long"]):
        with pytest.raises(InputError, match=f"state '{table.column('state')[row]}' .*{message}"):
            table.image(row)
        assert table.source(row).endswith("/absent")


def linked(folder: Path) -> Path:
    """A table whose image folder and one further image are symlinks that lead outside its folder."""
    (folder / "far" / "im").mkdir(parents=True)
    (folder / "near").mkdir()
    for value, name in enumerate(["im/0.png", "im/1.png", "2.png"]):
        Image.fromarray(np.full((4, 6), value, np.uint8)).save(folder / "far" / name)
    (folder / "near" / "im").symlink_to("../far/im")
    (folder / "near" / "2.png").symlink_to(folder / "far" / "2.png")
    return write_table(folder / "near", ["im/0.png,a,left,c,g", "im/1.png,b,left,c,g", "2.png,c,left,c,g"])


def test_symlinks_in_the_folder_are_followed(tmp_path: Path):
    table = MultiViewTable.read(linked(tmp_path))
    assert table.images(np.arange(3), mode="grey")[:, 0, 0].tolist() == [0, 1, 2]


def test_written_paths_must_stay_inside_the_folder_but_symlinks_may_not(tmp_path: Path):
    """`im/..` is the table's folder, although `im` links to another place."""
    linked(tmp_path)
    Image.fromarray(np.full((4, 6), 9, np.uint8)).save(tmp_path / "far" / "secret.png")
    outside = ["../far/2.png", str(tmp_path / "far" / "2.png"), "im/../../far/2.png", "../near/../far/2.png"]
    inside = ["im/../2.png", "../near/2.png", str(tmp_path / "near" / "2.png"), str(tmp_path / "near" / "im" / "0.png")]
    names = [*outside, "im/../secret.png", *inside]
    lines = [f"{name},{number},left,c,g" for number, name in enumerate(names)]
    table = MultiViewTable.read(write_table(tmp_path / "near", lines))
    for row in range(len(outside)):
        with pytest.raises(InputError, match=f"state '{table.column('state')[row]}' .*outside"):
            table.image(row)
    with pytest.raises(InputError, match=r"near/secret\.png"):
        table.image(4)
    assert table.images(np.arange(5, 9), mode="grey")[:, 0, 0].tolist() == [2, 2, 2, 0]


def test_absolute_paths_are_inside_for_every_alias_of_the_folder(tmp_path: Path):
    near = linked(tmp_path)
    (tmp_path / "alias").symlink_to("near")
    for written, read in [("near", "alias"), ("alias", "near")]:
        lines = [f"{tmp_path / written / name},{name},left,c,g" for name in ("im/0.png", "2.png")]
        table = MultiViewTable.read(write_table(near, lines).parent / read)
        assert table.images(np.arange(2), mode="grey")[:, 0, 0].tolist() == [0, 2]


def test_symlinked_folders_are_views(tmp_path: Path):
    for name in ("far/a.png", "far/deep/b.png", "data/rear/a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((4, 4), len(name), np.uint8)).save(tmp_path / name)
    (tmp_path / "data" / "front").symlink_to("../far")
    (tmp_path / "far" / "c.png").symlink_to("a.png")
    table = MultiViewTable.from_folder(tmp_path / "data")
    assert table.column("path").tolist() == ["front/a.png", "front/c.png", "front/deep/b.png", "rear/a.png"]
    front, rear = table.pairs("front", "rear")
    assert table.images(front, mode="grey")[0, 0, 0] == len("far/a.png")
    assert table.images(rear, mode="grey")[0, 0, 0] == len("data/rear/a.png")


def test_circular_symlinks_are_followed_once(tmp_path: Path):
    for name in ("data/a/1.png", "data/z/deep/2.png", "far/3.png", "4.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / name)
    for link, target in [
        ("data/self", "."),
        ("data/a/up", ".."),
        ("data/a/above", "../.."),
        ("data/a/deep", "../z/deep"),
        ("data/far", "../far"),
        ("far/back", "../data"),
        ("far/far", "."),
        ("data/a/round", "round"),
        ("data/again", "far"),
    ]:
        (tmp_path / link).symlink_to(target)
    table = MultiViewTable.from_folder(tmp_path / "data")
    assert table.column("path").tolist() == ["a/1.png", "again/3.png", "z/deep/2.png"]
