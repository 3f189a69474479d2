from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jepatlas.core.errors import InputError
from jepatlas.core.files import cache_folder, read_json
from jepatlas.data.images import MultiViewTable
from jepatlas.worlds.objects import RenderedObjects, render

TINY = RenderedObjects(
    categories=("car", "tree"),
    instances=2,
    azimuths=2,
    elevations=(30.0,),
    lights=("noon",),
    cameras=3,
    angle=100.0,
    size=16,
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    try:
        TINY.frames(TINY.states()[:1])
    except InputError as error:
        pytest.skip(f"nothing can be drawn on this machine: {error}")
    return cache_folder()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_folder_is_a_multi_view_table(tmp_path: Path):
    calls: list[tuple[int, int]] = []
    folder = render(TINY, tmp_path / "objects", progress=lambda done, total: calls.append((done, total)))
    table = MultiViewTable.read(folder)
    assert folder == tmp_path / "objects" and calls == [(8, 24), (16, 24), (24, 24)]
    assert table.views == ["camera000", "camera100", "camera200"] and len(table) == 24
    rows, others = table.pairs("camera000", "camera200")
    np.testing.assert_array_equal(table.images(rows), TINY.view_frames(TINY.states(), 0))
    np.testing.assert_array_equal(table.images(others), TINY.view_frames(TINY.states(), 2))
    assert table.labels(rows).tolist() == ["car"] * 4 + ["tree"] * 4
    assert table.column("group")[rows].tolist() == [f"{x}0{n}" for x in ("car", "tree") for n in "0011"]
    assert table.column("azimuth")[rows].tolist() == ["0", "180"] * 4
    assert set(table.column("lighting")) == {"noon"} and set(table.column("elevation")) == {"30"}


def test_each_config_is_rendered_once_and_reproducibly(cache: Path, tmp_path: Path):
    folder = render(TINY)
    made = folder.stat()
    assert folder.parent == cache and render(TINY, progress=lambda *_: pytest.fail("drawn again")) == folder
    assert folder.stat() == made
    assert contents(render(TINY, tmp_path / "again")) == contents(folder)
    assert read_json(folder / "rendered.json")["config"]["kind"] == "objects"
    for other in (replace(TINY, seed=1), replace(TINY, floors="same"), replace(TINY, angle=101.0)):
        assert render(other) != folder


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("damage", ["picture cut", "picture absent", "table cut", "table absent"])
def test_incomplete_folders_are_rendered_again(tmp_path: Path, damage: str, named: bool):
    place = tmp_path / "objects" if named else None
    folder = render(TINY, place)
    before = contents(folder)
    what, how = damage.split()
    path = folder / ("views.csv" if what == "table" else "images/camera100/car00-a0-e30-noon.png")
    path.write_bytes(path.read_bytes()[:-5]) if how == "cut" else path.unlink()
    assert contents(render(TINY, place)) == before


def test_cache_folders_without_metadata_are_rendered_again():
    folder = render(TINY)
    before = contents(folder)
    for text in ('{"procedure": 1, "con', "[]", "{}"):
        (folder / "rendered.json").write_text(text)
        assert contents(render(TINY)) == before


def test_interrupted_rendering_leaves_no_folder(cache: Path):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render(TINY, progress=stop)
    assert not any(cache.iterdir())


def test_other_folders_are_refused_and_unchanged(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    assert render(TINY, tmp_path / "mine").is_dir()  # empty folders are accepted
    before = contents(tmp_path / "mine")
    with pytest.raises(InputError, match="mine"):
        render(replace(TINY, seed=1), tmp_path / "mine")
    assert contents(tmp_path / "mine") == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("kept")
    for name in ("other", "other/notes.txt"):
        with pytest.raises(InputError, match="folder"):
            render(TINY, tmp_path / name)
    assert contents(tmp_path / "other") == {"notes.txt": b"kept"}
