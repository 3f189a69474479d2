"""Atlas folders: bit-exact round trips, and errors that name the damaged file."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from gaussian_worlds import rotation

from jepatlas.alignment.atlas.atlas_folder import exchanged, load_atlas, save_atlas, size_table
from jepatlas.alignment.atlas.chart import Attachment, CertificateSummary, Chart, ChartLatents
from jepatlas.alignment.atlas.chart_atlas import Atlas
from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.core.sealing import sha256_of_file, sha256_of_json

BOUND = CertificateSummary(Estimate(0.125, 0.1, float("inf"), 500), identified=True, whitened=True)


def make_atlas(*, texts: bool = False) -> Atlas:
    z = np.random.default_rng(0).standard_normal((40, 3))
    ids = np.array([f"é{i}" for i in range(40)]) if texts else np.arange(40) - 7
    about = {"seed": 3, "deep": {"1": [1.5, None]}}
    ada = ChartLatents("ada", z, ids, BOUND, about)
    ben = ChartLatents("ben", z[:, :2] @ rotation(2), ids)
    return Atlas.build([ada, ben], anchors=25).attach("ben", Attachment("probe", "colour", b"some bytes"))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_atlas(make_atlas(), tmp_path / "atlas")
    return tmp_path / "atlas"


def assert_same(one: Any, other: Any) -> None:
    if dataclasses.is_dataclass(one):
        assert type(one) is type(other)
        for part in dataclasses.fields(one):
            assert_same(getattr(one, part.name), getattr(other, part.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("texts", [True, False])
def test_round_trip_is_bit_exact(tmp_path: Path, texts: bool):
    atlas = make_atlas(texts=texts)
    seal = save_atlas(atlas, tmp_path / "a")
    found = load_atlas(tmp_path / "a", seal=seal)
    assert_same(atlas, found)
    assert save_atlas(found, tmp_path / "b") == seal
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b"}


def test_loaded_atlas_recognises_layer_normalisation(tmp_path: Path):
    """It is derived from the stored maps, so older files need no extra field."""
    inner = np.random.default_rng(0).standard_normal((200, 16))
    ids, h = np.arange(200), (inner - inner.mean(1, keepdims=True)) / inner.std(1, keepdims=True)
    save_atlas(Atlas.build([ChartLatents("ada", h * 2 + 1, ids), ChartLatents("ben", h[:, ::-1], ids)]), tmp_path / "a")
    found = load_atlas(tmp_path / "a")
    assert [chart.full for chart in found.charts] == [15, 15]
    assert all(verdict.value == 15 and verdict.passed is None for verdict in found.verdicts())
    assert "normed" not in (tmp_path / "a" / "atlas.json").read_text()


def test_description_lists_every_file_with_size_and_hash(saved: Path):
    meta = json.loads((saved / "atlas.json").read_text())
    found = {p.relative_to(saved).as_posix() for p in saved.rglob("*") if p.is_file()} - {"atlas.json"}
    assert meta["files"].keys() == found
    for name, entry in meta["files"].items():
        assert entry == {"bytes": (saved / name).stat().st_size, "sha256": sha256_of_file(saved / name)}
    assert meta["format"] == "jepatlas.atlas" and meta["version"] == 1
    assert meta["charts"][0]["certificate"]["bound"]["high"] == "inf"


def test_moved_folder_loads(saved: Path, tmp_path: Path):
    shutil.move(saved, tmp_path / "mailed")
    assert_same(load_atlas(tmp_path / "mailed"), make_atlas())


def test_adding_a_chart_keeps_the_other_files(saved: Path):
    before = {p: sha256_of_file(p) for p in saved.rglob("*") if p.is_file() and p.name != "atlas.json"}
    atlas = load_atlas(saved)
    z = np.random.default_rng(0).standard_normal((40, 3))
    save_atlas(atlas.add(ChartLatents("cem", z @ rotation(3), np.arange(40) - 7)), saved)
    assert {p: sha256_of_file(p) for p in before} == before
    assert load_atlas(saved).names == ["ada", "ben", "cem"]


def test_exchanged_sizes_match_the_files(saved: Path):
    atlas = make_atlas()
    sizes = exchanged(atlas)
    on_disk = {p.relative_to(saved).as_posix(): p.stat().st_size for p in saved.rglob("*") if p.is_file()}
    assert sizes == {
        "ada": on_disk["charts/ada.safetensors"],
        "ben": on_disk["charts/ben.safetensors"] + len(b"some bytes"),
        "anchors.safetensors": on_disk["anchors.safetensors"],
    }
    table = size_table(atlas)
    assert [row[0] for row in table.rows] == ["ada", "ben", "anchors (25 states)", "total"]
    assert table.rows[-1][-1] == f"{sum(sizes.values()):,}"


def reseal(folder: Path, change) -> None:
    """Edit the JSON and recompute its seal, as someone who knows the format could."""
    meta = json.loads((folder / "atlas.json").read_text())
    meta.pop("seal")
    change(meta)
    (folder / "atlas.json").write_text(json.dumps(meta | {"seal": sha256_of_json(meta)}))


@pytest.mark.parametrize(
    "name", ["charts/ada.safetensors", "anchors.safetensors", "attachments/ben/probe/colour.safetensors"]
)
@pytest.mark.parametrize("damage", ["one bit", "cut", "longer", "missing", "folder"])
def test_damaged_file_is_named(saved: Path, name: str, damage: str):
    data = (saved / name).read_bytes()
    (saved / name).unlink()
    if damage == "one bit":
        (saved / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage in ("cut", "longer"):
        (saved / name).write_bytes(data[:-1] if damage == "cut" else data + b" ")
    elif damage == "folder":
        (saved / name).mkdir()
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        load_atlas(saved)


def test_every_changed_character_of_the_description_is_detected(saved: Path):
    whole = (saved / "atlas.json").read_bytes()
    for at in range(0, len(whole) - 1, 11):
        changed = bytearray(whole)
        changed[at] = ord("7") if changed[at] != ord("7") else ord("8")
        (saved / "atlas.json").write_bytes(changed)
        if whole[at : at + 1].isspace():
            continue  # spaces between tokens carry no content
        with pytest.raises(InputError, match=r"atlas\.json"):
            load_atlas(saved)


def test_resealed_folder_does_not_match_the_senders_seal(saved: Path):
    seal = json.loads((saved / "atlas.json").read_text())["seal"]
    reseal(saved, lambda meta: meta["charts"][0]["certificate"].update(identified=False))
    assert load_atlas(saved).chart("ada").certificate != BOUND
    with pytest.raises(InputError, match=f"{seal} was expected"):
        load_atlas(saved, seal=seal)


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "charts/../../outside",
        "/etc/hostname",
        "charts\\..\\outside",
        "C:outside",
        "",
        ".",
        "./x",
        "charts//x",
    ],
)
def test_path_outside_the_folder_is_rejected(saved: Path, name: str):
    secret = saved.parent / "outside"
    secret.write_bytes(b"secret")
    entry = {"bytes": 6, "sha256": sha256_of_file(secret)}
    reseal(saved, lambda meta: meta["files"].update({name: entry}))
    with pytest.raises(InputError, match=r"atlas\.json .* not inside"):
        load_atlas(saved)


@pytest.mark.parametrize("linked", ["charts/ada.safetensors", "charts", "atlas.json"])
def test_symbolic_links_are_rejected(saved: Path, linked: str):
    shutil.move(saved / linked, saved.parent / "elsewhere")
    (saved / linked).symlink_to(saved.parent / "elsewhere")
    with pytest.raises(InputError, match=f"{linked} is a symbolic link"):
        load_atlas(saved)


def test_unlisted_files_are_ignored(saved: Path):
    (saved / ".DS_Store").write_bytes(b"junk")
    (saved / "charts" / "evil.safetensors").symlink_to("/etc/passwd")
    assert_same(load_atlas(saved), make_atlas())


@pytest.mark.parametrize("version", [0, 2, 99])
def test_unknown_version_is_rejected(saved: Path, version: int):
    reseal(saved, lambda meta: meta.update(version=version))
    with pytest.raises(InputError, match=f"version {version}.* version 1"):
        load_atlas(saved)


def without(key: str):
    return lambda meta: meta["charts"][0].pop(key)


@pytest.mark.parametrize(
    "change",
    [
        *(without(key) for key in ("name", "width", "tied", "certificate", "provenance", "attachments")),
        lambda meta: meta.pop("charts"),
        lambda meta: meta.update(charts=5),
        lambda meta: meta.update(width=4),
        lambda meta: meta["charts"][0].update(width=2),
        lambda meta: meta["charts"][0].update(name="ben"),
        lambda meta: meta["charts"][0].update(name="../ada"),
        lambda meta: meta["charts"][1]["attachments"][0].update(name="other"),
        lambda meta: meta["files"].pop("charts/ada.safetensors"),
        lambda meta: meta["files"].update({"charts/ada.safetensors": "x"}),
        lambda meta: meta["charts"].clear(),
        lambda meta: meta.update(format="jepatlas.run"),
        lambda meta: meta.update(version="1"),
    ],
)
def test_invalid_description_is_rejected(saved: Path, change):
    reseal(saved, change)
    with pytest.raises(InputError, match="atlas"):
        load_atlas(saved)


@pytest.mark.parametrize("tensors", ["noise", "keys", "nan", "shapes"])
def test_invalid_chart_is_rejected(saved: Path, tensors: str):
    path = saved / "charts" / "ada.safetensors"
    parts = safetensors.numpy.load_file(path)
    if tensors == "keys":
        parts["more"] = np.zeros(1)
    elif tensors == "nan":
        parts["to_frame.weight"] = parts["to_frame.weight"] * np.nan
    else:
        parts["to_frame.weight"] = parts["to_frame.weight"][:, :2]
    data = b"noise" * 30 if tensors == "noise" else safetensors.numpy.save(parts)
    path.write_bytes(data)
    entry = {"bytes": len(data), "sha256": sha256_of_file(path)}
    reseal(saved, lambda meta: meta["files"].update({"charts/ada.safetensors": entry}))
    with pytest.raises(InputError, match=r"charts/ada\.safetensors"):
        load_atlas(saved)


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(25.0),
        np.full((25, 2), 2**31, np.uint32),  # not Unicode code points
        np.zeros((25, 0), np.uint32),
        np.zeros(25, np.int64),
        np.arange(24),
    ],
)
def test_invalid_anchors_are_rejected(saved: Path, ids: np.ndarray):
    path = saved / "anchors.safetensors"
    safetensors.numpy.save_file(safetensors.numpy.load_file(path) | {"ids": ids}, path)
    entry = {"bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
    reseal(saved, lambda meta: meta["files"].update({"anchors.safetensors": entry}))
    with pytest.raises(InputError, match=r"anchors\.safetensors"):
        load_atlas(saved)


@pytest.mark.parametrize("text", ["[]", "{}", "", "[" * 100_000, '{"format": "jepatlas.atlas"}'])
def test_malformed_description_is_rejected(saved: Path, text: str):
    (saved / "atlas.json").write_text(text)
    with pytest.raises(InputError, match=r"atlas\.json"):
        load_atlas(saved)


def test_missing_folder_or_description_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        load_atlas(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"There is no file .*atlas\.json"):
        load_atlas(tmp_path)


def test_save_never_replaces_other_files(tmp_path: Path, saved: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match="home"):
        save_atlas(make_atlas(), home)
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        save_atlas(make_atlas(), saved)
    assert (home / "thesis.tex").read_text() == "years" and (saved / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    save_atlas(make_atlas(), tmp_path / "empty")
    assert_same(load_atlas(tmp_path / "empty"), make_atlas())


def test_failed_save_keeps_the_previous_atlas(saved: Path, monkeypatch: pytest.MonkeyPatch):
    before = {p: p.read_bytes() for p in saved.rglob("*") if p.is_file()}
    write, calls = Path.write_bytes, []

    def fails_later(path: Path, data: bytes) -> int:
        calls.append(path)
        if len(calls) == 3:
            raise OSError(28, os.strerror(28))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fails_later)
    with pytest.raises(InputError, match="No space left"):
        save_atlas(make_atlas(texts=True), saved)
    monkeypatch.undo()
    assert {p: p.read_bytes() for p in saved.rglob("*") if p.is_file()} == before
    assert [p.name for p in saved.parent.iterdir()] == ["atlas"]


@pytest.mark.parametrize("about", [{"array": np.zeros(2)}, {"set": {1}}])
def test_provenance_that_is_not_plain_data_is_rejected_before_writing(tmp_path: Path, about: dict[str, Any]):
    atlas = make_atlas()
    first: Chart = dataclasses.replace(atlas.charts[0], provenance=about)
    with pytest.raises(InputError, match="plain data"):
        save_atlas(dataclasses.replace(atlas, charts=(first, *atlas.charts[1:])), tmp_path / "a")
    assert not list(tmp_path.iterdir())
