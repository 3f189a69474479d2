"""Latents from files in every format, and rows matched by their ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workflows.align.models import FORMATS, Models, write

from jepatlas.alignment import Latents
from jepatlas.core.errors import InputError
from jepatlas.workflows.align.latent_files import match, model_names, read_array, read_latents, read_pair

MODELS = Models.draw(rows=20)
IDS = np.array([f"state {i}" for i in range(20)])


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_latents(kind: str, tmp_path: Path):
    given = {"ids": np.arange(20), "labels": MODELS.group} if kind != "npy" else {}
    found = read_latents(write(tmp_path / f"ada.{kind}", h=MODELS.a, **given))
    assert found.name == "ada"
    np.testing.assert_array_equal(found.h, MODELS.a)
    assert (found.ids is None) == (kind == "npy")
    for key, array in given.items():
        np.testing.assert_array_equal(getattr(found, key), array)


@pytest.mark.parametrize("kind", ["txt", "npy", "npz", "csv", "parquet"])
def test_ids_file_overrides_the_ids_in_the_latents_file(kind: str, tmp_path: Path):
    path = tmp_path / f"ids.{kind}"
    if kind == "txt":
        path.write_text("\n".join(IDS))
    else:
        write(path, ids=IDS)
    found = read_latents(write(tmp_path / "ada.npz", h=MODELS.a, ids=np.arange(20)), ids=path)
    np.testing.assert_array_equal(found.ids, IDS)  # not the ids stored with the latents


def test_table_of_one_column_has_one_value_per_row(tmp_path: Path):
    (path := tmp_path / "groups.csv").write_text("object\n" + "\n".join(map(str, range(20))))
    np.testing.assert_array_equal(read_latents(write(tmp_path / "ada.npy", h=MODELS.a), groups=path).groups, range(20))


def test_layers_are_sorted_and_the_last_is_the_latent(tmp_path: Path):
    layers = {f"layer{i}": np.full((5, 2), float(i)) for i in (10, 2, 1)}
    found = read_latents(write(tmp_path / "ada.npz", **layers))
    assert list(found.layers) == ["layer1", "layer2", "layer10"]
    assert (found.h == 10).all()
    assert (read_latents(write(tmp_path / "ben.npz", h=np.zeros((5, 1)), **layers)).h == 0).all()


def test_rows_and_all_their_arrays_are_matched_by_id():
    """Rows of b are reordered to match a."""
    order = np.random.default_rng(1).permutation(20)
    layers = {"layer0": 2 * MODELS.b[order], "layer1": MODELS.b[order]}
    a = Latents("ada", MODELS.a, IDS, MODELS.group, MODELS.label)
    b = Latents("ben", MODELS.b[order], IDS[order], MODELS.group[order], MODELS.label[order], MODELS.raw[order], layers)
    found = match(a, b)
    np.testing.assert_array_equal(found.a.h, MODELS.a)
    np.testing.assert_array_equal(found.b.h, MODELS.b)
    np.testing.assert_array_equal(found.b.raw, MODELS.raw)
    np.testing.assert_array_equal(found.b.layers["layer0"], 2 * MODELS.b)
    np.testing.assert_array_equal(found.labels, MODELS.label)
    np.testing.assert_array_equal(found.rows(np.array([3, 1])).groups, MODELS.group[[3, 1]])
    assert not found.has_raw


@pytest.mark.parametrize("kind", ["npz", "safetensors", "csv", "parquet"])
def test_untrained_latents_are_matched_by_id(kind: str, tmp_path: Path):
    rows = np.random.default_rng(1).permutation(20)
    marks = {"ids": np.arange(20), "held": np.arange(20) > 9}
    a = read_latents(write(tmp_path / f"ada.{kind}", h=MODELS.a, untrained=2 * MODELS.a, **marks))
    b = read_latents(write(tmp_path / f"ben.{kind}", h=MODELS.b[rows], untrained=3 * MODELS.b[rows], ids=rows))
    found = match(a, b)
    some = found.rows(np.array([3, 1])).b.untrained
    assert found.has_untrained and not found.has_raw and found.held is not None
    assert found.a.untrained is not None and some is not None
    np.testing.assert_allclose(found.a.untrained, 2 * MODELS.a)
    np.testing.assert_allclose(some, 3 * MODELS.b[[3, 1]])


def test_intersect_drops_states_of_one_model_only():
    """The first state is missing in b, the last two in a."""
    order = np.random.default_rng(1).permutation(np.arange(1, 20))
    a = Latents("ada", MODELS.a[:18], IDS[:18], labels=MODELS.label[:18])
    b = Latents("ben", MODELS.b[order], IDS[order], labels=MODELS.label[order], raw=MODELS.raw[order])
    with pytest.raises(InputError, match=r"1 id of a .*state 0.* --intersect .*intersect=True"):
        match(a, b)
    found = match(a, b, intersect=True)
    np.testing.assert_array_equal(found.a.h, MODELS.a[1:18])
    np.testing.assert_array_equal(found.b.h, MODELS.b[1:18])
    np.testing.assert_array_equal(found.b.raw, MODELS.raw[1:18])
    assert found.provenance == {"left out of a": 1, "left out of b": 2}
    assert len(found.left_out_note) == 1 and "1 of ada, 2 of ben" in found.left_out_note[0]
    assert found.rows(np.arange(3)).left_out == (1, 2)
    whole = match(Latents("ada", MODELS.a, IDS), Latents("ben", MODELS.b, IDS), intersect=True)
    assert len(whole.a.h) == 20 and not whole.provenance and not whole.left_out_note


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (IDS, np.char.upper(IDS), "share 0 of .* 16 .*'state 0'.*'STATE 0'"),
        (np.arange(20), np.arange(5, 25), "share 15 of .* at least 16"),
        (None, None, "--intersect.*ada and ben have none"),
        (np.arange(20) // 2, np.arange(20), "10 ids occur more than once in a"),
    ],
)
def test_too_few_shared_states(a: np.ndarray | None, b: np.ndarray | None, message: str):
    with pytest.raises(InputError, match=message):
        match(Latents("ada", MODELS.a, a), Latents("ben", MODELS.b, b), intersect=True)


def test_labels_of_the_target_only_are_used():
    found = match(Latents("ada", MODELS.a), Latents("ben", MODELS.b, groups=MODELS.group, labels=MODELS.label))
    assert found.groups is MODELS.group and found.labels is MODELS.label


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ({"h": MODELS.a[:9]}, {}, "ada has 9 rows and ben has 20.*--ids"),
        ({"ids": IDS}, {}, "ada .*ids.* ben"),
        ({}, {"ids": IDS}, "ben .*ids.* ada"),
        ({"ids": IDS}, {"ids": np.arange(20)}, "never match"),
        ({"ids": np.arange(20)}, {"ids": np.arange(3, 23)}, "3 ids of a .*b: 0, 1, 2"),
        ({"ids": np.arange(20) // 2}, {"ids": np.arange(20)}, "10 ids .*more than once in a: 0, 1, 2, 3, 4 and 5"),
        ({"ids": np.where(np.arange(20) < 2, np.nan, 1.0)}, {"ids": np.arange(20)}, r"missing \(NaN\) in 2 rows"),
        ({"groups": MODELS.group}, {"groups": MODELS.group[::-1]}, "groups of 16 of 20"),
        ({"labels": MODELS.label}, {"labels": MODELS.group}, "labels of 20 of 20"),
    ],
)
def test_rows_that_do_not_match_are_rejected(a: dict[str, Any], b: dict[str, Any], message: str):
    ada: dict[str, Any] = {"h": MODELS.a} | a
    with pytest.raises(InputError, match=message):
        match(Latents("ada", **ada), Latents("ben", MODELS.b, **b))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": MODELS.a}, "has no array 'h'.* x"),
        ({"h": MODELS.a[:, 0]}, r"ada: latents .*\(20,\)"),
        ({"h": MODELS.a[:, :0]}, "must be a matrix"),
        ({"h": np.where(np.eye(20, 4) > 0, np.nan, 1)}, r"'ada: h' has 4 .*row 0"),
        ({"h": IDS[:, None]}, "must hold numbers"),
        ({"h": MODELS.a, "labels": MODELS.label[:7]}, "20 latents.* 7 rows of labels"),
        ({"h": MODELS.a, "sample_id": IDS}, "'sample_id'.*'ids'"),
        ({"h": MODELS.a, "userIDs": np.arange(20.0)}, "'userIDs'"),
        ({"h": MODELS.a, "ids": MODELS.a}, r"ids .*\(20, 4\)"),
        ({"h": MODELS.a, "ids": np.array(3)}, r"ids .*\(\)"),
        ({"h": MODELS.a, "raw": np.array(3.0)}, "20 latents.* raw"),
        ({"h": MODELS.a, "untrained": MODELS.a[:, :3]}, r"ada: 'untrained' must .*\(20, 4\).*\(20, 3\)"),
        ({"h": MODELS.a, "untrained": MODELS.a[:7]}, "20 latents.* 7 rows of untrained"),
        ({"h": MODELS.a, "untrained": MODELS.a * np.inf}, "'ada: untrained' has 80 "),
        ({"h": MODELS.a, "layer0": np.array(3.0)}, "20 latents.* layer0"),
        ({"h": MODELS.a, "layer0": MODELS.a * np.nan}, "'ada: layer0' has 80 "),
    ],
)
def test_invalid_files_are_rejected(arrays: dict[str, np.ndarray], message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        read_latents(write(tmp_path / "ada.npz", **arrays))


def test_other_arrays_are_ignored_if_ids_are_given(tmp_path: Path):
    beside = write(
        tmp_path / "ada.npz", h=MODELS.a, ids=np.arange(20), sample_id=IDS, grid=MODELS.a, centroid=MODELS.a[:, 0]
    )
    np.testing.assert_array_equal(read_latents(beside).h, MODELS.a)
    fractions = write(tmp_path / "ben.npz", h=MODELS.a, grid=MODELS.a, centroid=MODELS.a[:, 0])
    assert read_latents(fractions).ids is None
    (tmp_path / "cleo.csv").write_text("sample_id,d0,d1\n1,.5,2\n2,.5,3\n")
    with pytest.raises(InputError, match="'sample_id'"):
        read_latents(tmp_path / "cleo.csv")


def test_invalid_files_of_one_array_are_rejected(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.txt"):
        read_array(tmp_path / "absent.txt")
    (tmp_path / "latin.txt").write_bytes("grün".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.txt .*UTF-8"):
        read_array(tmp_path / "latin.txt")
    with pytest.raises(InputError, match=r"one array.* ids, labels"):
        read_array(write(tmp_path / "two.npz", ids=IDS, labels=MODELS.label))


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a.npy", "b.npz"], ["a", "b"]),
        (["ada/latents.npz", "ben/latents.npz"], ["ada", "ben"]),
        (["ada/run/latents.npz", "ben/run/latents.npz"], ["ada", "ben"]),
        (["ada/latents.npz", "ben/latents.npz", "ada.npy"], ["latents", "latents", "ada"]),
        (["one.npy", "one.npy"], ["one", "one"]),
    ],
)
def test_files_of_one_name_are_named_after_their_folders(paths: list[str], names: list[str]):
    assert model_names([Path(path) for path in paths]) == names


def test_a_pair_is_read_with_distinguishable_names(tmp_path: Path):
    paths = [tmp_path / name / "latents.npz" for name in ("ada", "ben")]
    for path, h in zip(paths, (MODELS.a, MODELS.b), strict=True):
        path.parent.mkdir()
        write(path, h=h, ids=IDS)
    pairs = read_pair(*paths)
    assert (pairs.a.name, pairs.b.name) == ("ada", "ben") and len(pairs) == 20
