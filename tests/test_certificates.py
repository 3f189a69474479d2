"""Certificates of files: anybody's latents, made outside the package with plain numpy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jepatlas.base.arrays import write_arrays
from jepatlas.cli import main
from jepatlas.report import read_chapters

Arrays = dict[str, np.ndarray]
RHO = 0.9


def world(rows: int = 6000, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    z, noise = rng.standard_normal((2, rows, dim))
    return z, RHO * z + np.sqrt(1 - RHO**2) * noise


def file_of(folder: Path, encode: Callable[[np.ndarray], np.ndarray], name: str = "latents.npz") -> Path:
    z, z_next = world()
    write_arrays(folder / name, {"h": encode(z), "h_next": encode(z_next), "z": z})
    return folder / name


def rotate(z: np.ndarray) -> np.ndarray:
    return z @ np.linalg.qr(np.random.default_rng(2).standard_normal((z.shape[1],) * 2))[0]


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    code = main(["certify", *words, "--json", "-"])
    out = json.loads(capsys.readouterr().out)
    return code, out | {"by_name": {verdict["name"]: verdict for verdict in out["verdicts"]}}


@pytest.mark.parametrize("name", ["a.npz", "a.safetensors", "a.csv", "a.parquet"])
def test_a_rotation_passes_in_every_format(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer([str(file_of(tmp_path, rotate, name)), "--rho", str(RHO), "--require"], capsys)
    assert code == 0
    assert all(verdict["passed"] is not False for verdict in found["verdicts"])
    assert found["by_name"]["r2"]["value"] > 0.9999


@pytest.mark.parametrize(
    "encode",
    [lambda z: z**3, lambda z: np.random.default_rng(3).permutation(z), lambda z: z[:, :2]],
    ids=["cubic warp", "scramble", "missing dimension"],
)
def test_corruptions_fail_and_only_require_makes_it_an_error(
    encode: Callable[[np.ndarray], np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(file_of(tmp_path, encode))
    code, found = answer([path], capsys)
    assert code == 0
    assert found["by_name"]["r2"]["passed"] is False
    assert answer([path, "--require"], capsys)[0] == 1


def test_without_truth_there_is_the_bound_and_without_both_the_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    z, z_next = world()
    write_arrays(tmp_path / "h.npz", {"h": rotate(z), "h_next": rotate(z_next)})
    _, found = answer([str(tmp_path / "h.npz"), "--rho", str(RHO)], capsys)
    assert "r2" not in found["by_name"]
    assert found["by_name"]["bound"]["passed"] is True
    _, alone = answer([str(tmp_path / "h.npz")], capsys)
    assert alone["by_name"].keys() == found["by_name"].keys() - {name for name in found["by_name"] if "bound" in name
        or name.split("_")[0] in ("epsilon", "delta", "gap")}  # fmt: skip
    assert "stays open" in alone["summary"]


def test_the_record_is_kept_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer([str(file_of(tmp_path, rotate)), "--out", str(tmp_path / "kept")], capsys)
    (chapter,) = read_chapters(tmp_path / "kept")
    assert [panel["x"] for panel in chapter.figures[0]["panels"]] == ["z", "h", "h_rotated"]
    turned = chapter.arrays["h_rotated"]
    np.testing.assert_allclose(turned, chapter.arrays["z"], atol=0.1)  # rotated back, on samples that were not fitted


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"h": np.ones((9, 2))}, [], "h_next is missing"),
        ({"h": np.ones((9, 2)), "h_next": np.ones((9, 2))}, ["--rho", "1.5"], "1.5"),
        ({"h": np.ones((9, 2)), "h_next": np.ones((8, 2))}, ["--rho", "0.5"], "same number of rows"),
        ({"h": np.full((9, 2), np.nan), "h_next": np.ones((9, 2))}, ["--rho", "0.5"], "18 values that are NaN"),
        ({"h": np.ones((9, 2)), "h_next": np.ones((9, 2))}, ["--samples", "5"], "--samples is for runs"),
    ],
    ids=["missing", "rho", "rows", "nan", "samples"],
)
def test_bad_files_are_refused_in_one_message(
    arrays: Arrays, words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_arrays(tmp_path / "bad.npz", arrays)
    assert main(["certify", str(tmp_path / "bad.npz"), *words, "--out", str(tmp_path / "kept")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()
