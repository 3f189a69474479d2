"""Certificates of latent files written with plain numpy, through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jepatlas as ja
from jepatlas.cli import main
from jepatlas.core.arrays import write_arrays
from jepatlas.reporting import read_chapters

Arrays = dict[str, np.ndarray]
Encode = Callable[[np.ndarray], np.ndarray]
Captured = pytest.CaptureFixture[str]
RHO = 0.9


def world(rows: int = 1500, dim: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    z, noise = rng.standard_normal((2, rows, dim))
    return z, RHO * z + np.sqrt(1 - RHO**2) * noise


def rotate(z: np.ndarray) -> np.ndarray:
    return z @ np.linalg.qr(np.random.default_rng(2).standard_normal((z.shape[1],) * 2))[0]


def file_of(folder: Path, encode: Encode, rows: int = 1500, dim: int = 2, truth: bool = True) -> str:
    z, z_next = world(rows, dim)
    path = folder / "latents.npz"
    if truth:
        np.savez(path, h=encode(z), h_next=encode(z_next), z=z)
    else:
        np.savez(path, h=encode(z), h_next=encode(z_next))
    return str(path)


def answer(words: list[str], capsys: Captured) -> tuple[int, dict[str, Any]]:
    code = main(["certify", *words, "--json", "-"])
    out = json.loads(capsys.readouterr().out)
    return code, out | {"by_name": {verdict["name"]: verdict for verdict in out["verdicts"]}}


@pytest.mark.parametrize("name", ["a.npz", "a.safetensors", "a.csv", "a.parquet"])
def test_rotation_passes_in_every_file_format(name: str, tmp_path: Path, capsys: Captured) -> None:
    z, z_next = world(300)
    write_arrays(tmp_path / name, {"h": rotate(z), "h_next": rotate(z_next), "z": z})
    code, found = answer([str(tmp_path / name)], capsys)
    assert code == 0 and found["diagnosis"]["kind"] == "rotation"
    assert found["by_name"]["r2"]["value"] > 0.9999


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_table_columns_are_identified_by_name(name: str, tmp_path: Path, capsys: Captured) -> None:
    """One-dimensional arrays, which cannot be identified by their shapes."""
    z, z_next = (one[:, 0] for one in world(300, 1))
    write_arrays(tmp_path / name, {"h": -z, "h_next": -z_next, "z": z, "groups": np.arange(300) // 2})
    code, found = answer([str(tmp_path / name)], capsys)
    assert code == 0 and found["by_name"]["r2"]["value"] > 0.9999 and "Warning" not in found["summary"]


@pytest.mark.slow
@pytest.mark.parametrize("dim", [2, 8])
def test_rotation_passes_and_properties_of_the_world_are_estimated(dim: int, tmp_path: Path, capsys: Captured) -> None:
    path = file_of(tmp_path, rotate, 10_000, dim)
    code, found = answer([path, "--require"], capsys)
    assert code == 0 and found["diagnosis"]["kind"] == "rotation"
    assert all(verdict["passed"] is not False for verdict in found["verdicts"])
    rho, dimension = found["by_name"]["rho"], found["by_name"]["dimension"]
    assert dimension["value"] == dim and dimension["passed"] is True
    assert rho["low"] < RHO < rho["high"] and abs(rho["value"] - RHO) < 0.01
    (ladder,) = found["tables"]
    steps = [(row[1], float(row[2])) for row in ladder["rows"]]
    assert [kind for kind, _ in steps[: dim + 3]] == ["direction"] * dim + ["harmonic"] * 3
    np.testing.assert_allclose([value for _, value in steps[:dim]], RHO, atol=0.01)
    np.testing.assert_allclose([value for _, value in steps[dim : dim + 3]], RHO**2, atol=0.02)
    many = file_of(tmp_path, rotate, 200_000 // dim, dim)  # are sufficient if rho is given
    assert answer([many, "--rho", str(RHO), "--require"], capsys)[1]["by_name"]["bound"]["passed"] is True


CORRUPTIONS: dict[str, tuple[str, Encode]] = {
    "scramble": ("scramble", lambda z: np.random.default_rng(3).permutation(z)),
    "linear shear": ("shear", lambda z: np.c_[z[:, :1] + 0.8 * z[:, 1:2], z[:, 1:]]),
    "bent shear": ("shear", lambda z: np.c_[z[:, :1] + np.sin(1.5 * z[:, 1:2]), z[:, 1:]]),
    "cubic warp": ("warp", lambda z: rotate(z**3)),
    "missing dimension": ("missing", lambda z: z[:, :-1]),
    "collapsed dimension": ("collapsed", lambda z: np.c_[z[:, :-1], np.full(len(z), 0.3)]),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corruptions_fail_the_matching_verdict(name: str, tmp_path: Path, capsys: Captured) -> None:
    kind, encode = CORRUPTIONS[name]
    code, found = answer([file_of(tmp_path, encode), "--require"], capsys)
    assert code == 1
    assert found["diagnosis"]["kind"] == kind and found["verdicts"][0]["name"] == "diagnosis"
    assert found["verdicts"][0]["passed"] is False and found["verdicts"][0]["advice"] == found["diagnosis"]["sentence"]
    assert found["summary"].startswith(found["diagnosis"]["sentence"])


def test_without_states_the_bound_is_reported_and_the_rest_undecided(tmp_path: Path, capsys: Captured) -> None:
    path = file_of(tmp_path, rotate, 60_000, truth=False)
    _, given = answer([path, "--rho", str(RHO)], capsys)
    assert given["by_name"]["bound"]["passed"] is True and given["by_name"]["rho"]["passed"] is True
    _, alone = answer([path], capsys)
    for found in (given, alone):
        assert "r2" not in found["by_name"] and found["diagnosis"] is None
        assert (
            "Open without the true state" in found["summary"] and "dimensions that the latents miss" in found["summary"]
        )
        assert found["by_name"]["dimension"]["value"] == 2 and len(found["tables"]) == 1
    assert alone["by_name"].keys() == given["by_name"].keys()
    assert alone["by_name"]["bound"]["value"] > given["by_name"]["bound"]["value"]
    assert f"{alone['by_name']['rho']['high']:.4f}, the upper limit" in alone["by_name"]["bound"]["advice"]


def test_pass_criterion(tmp_path: Path, capsys: Captured) -> None:
    """With true states the diagnosis decides; otherwise the better bound and the audit. Undecided is not a pass."""

    def scaled(z: np.ndarray) -> np.ndarray:
        return 3 * rotate(z) + 5

    for truth, rows, words in ((True, 3000, []), (False, 30_000, ["--rho", "0.9"])):
        code, found = answer([file_of(tmp_path, scaled, rows, truth=truth), "--require", *words], capsys)
        assert (code, found["passed"]) == (0, True) and "The certificate passes." in found["summary"]
        assert found["by_name"]["bound"]["passed"] is False  # for raw latents; whitened latents pass
    code, found = answer([file_of(tmp_path, rotate, truth=False), "--require"], capsys)
    assert (code, found["passed"]) == (1, None) and "The certificate is undecided" in found["summary"]
    assert "All" not in found["summary"] and found["by_name"]["bound"]["passed"] is None
    code, found = answer([file_of(tmp_path, np.exp, truth=False), "--rho", "0.9", "--require"], capsys)
    assert (code, found["passed"]) == (1, False) and "The certificate fails." in found["summary"]


def test_few_pairs_of_few_groups_are_not_certified(tmp_path: Path, capsys: Captured) -> None:
    z, z_next = world(400)
    np.savez(tmp_path / "five.npz", h=z, h_next=z_next, groups=np.arange(400) // 80)
    code, found = answer([str(tmp_path / "five.npz"), "--require"], capsys)
    assert (code, found["passed"]) == (1, None) and "nothing can be certified" in found["summary"]


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "rows"), [(1, 20_000), (2, 30_000)])
def test_rotation_is_certified_without_rho_given_enough_pairs(
    dim: int, rows: int, tmp_path: Path, capsys: Captured
) -> None:
    code, found = answer([file_of(tmp_path, rotate, rows, dim, truth=False), "--require"], capsys)
    assert (code, found["passed"]) == (0, True), found["summary"]
    assert "f the latents determine the state" in found["summary"]


def test_bound_states_its_condition_when_rho_is_estimated(tmp_path: Path, capsys: Captured) -> None:
    """h = z² − 1 reveals only ρ², so the certificate must state the condition of its bound."""
    path = file_of(tmp_path, lambda z: (z**2 - 1) / np.sqrt(2), 3000, 1, truth=False)
    code, found = answer([path, "--require"], capsys)
    assert code == 1 and "f the latents determine the state" in found["summary"]
    given = answer([path, "--rho", "0.9"], capsys)[1]
    assert "determine the state" not in given["summary"] and given["by_name"]["bound"]["passed"] is False


def test_unused_arrays_are_named(tmp_path: Path, capsys: Captured) -> None:
    z, z_next = world(300)
    np.savez(tmp_path / "misspelt.npz", h=z, h_next=z_next, Z=z, x=z)
    summary = answer([str(tmp_path / "misspelt.npz"), "--rho", "0.9"], capsys)[1]["summary"]
    assert "Warning: 'Z' is unknown" in summary and "'x' is ignored" in summary and "'x_next' is missing" in summary
    np.savez(tmp_path / "right.npz", h=z, h_next=z_next, z=z, groups=np.arange(300))
    assert "Warning" not in answer([str(tmp_path / "right.npz"), "--rho", "0.9"], capsys)[1]["summary"]


def test_one_trajectory_without_groups_is_split_into_time_blocks(tmp_path: Path, capsys: Captured) -> None:
    noise, z = np.random.default_rng(0).standard_normal((1201, 2)), np.zeros((1201, 2))
    for t in range(1, 1201):
        z[t] = 0.5 * z[t - 1] + np.sqrt(0.75) * noise[t]
    arrays = {"h": z[:-1], "h_next": z[1:], "z": z[:-1]}
    write_arrays(tmp_path / "walk.npz", arrays)
    _, found = answer([str(tmp_path / "walk.npz")], capsys)
    assert "Rows are consecutive" in found["summary"] and " time blocks" in found["summary"]
    write_arrays(tmp_path / "grouped.npz", arrays | {"groups": np.arange(1200) // 20})
    _, grouped = answer([str(tmp_path / "grouped.npz")], capsys)
    assert "Rows are consecutive" not in grouped["summary"]


@pytest.mark.slow
def test_sixty_four_dimensions(tmp_path: Path, capsys: Captured) -> None:
    code, found = answer([file_of(tmp_path, rotate, 8000, 64), "--require"], capsys)
    assert (code, found["diagnosis"]["kind"]) == (0, "rotation")
    assert not [verdict for verdict in found["verdicts"] if verdict["passed"] is False], found["summary"]
    assert "32" not in found["summary"] and "x has" not in found["summary"]


def test_observations_reveal_a_missing_latent_dimension(tmp_path: Path, capsys: Captured) -> None:
    z, z_next = world(5000)
    np.savez(tmp_path / "seen.npz", h=z[:, :1], h_next=z_next[:, :1], x=np.sinh(z), x_next=np.sinh(z_next))
    _, found = answer([str(tmp_path / "seen.npz")], capsys)
    assert found["by_name"]["dimension"]["passed"] is False and "The observations have 2" in found["summary"]
    assert found["passed"] is False and "which dimensions are missing" in found["summary"]
    assert "dimensions that the latents miss" not in found["summary"]


@pytest.mark.parametrize(
    ("encode", "truth"),
    [
        (np.zeros_like, True),
        (np.zeros_like, False),
        (lambda z: np.c_[z, np.ones(len(z))], False),
        (lambda z: 1e-9 * z, True),
        (np.sign, True),
        (lambda z: z[:, [0, 0]], False),
    ],
    ids=["constant", "constant without truth", "constant column", "tiny", "signs", "repeated"],
)
def test_degenerate_latents_give_verdicts_without_errors(
    encode: Encode, truth: bool, tmp_path: Path, capsys: Captured
) -> None:
    code, found = answer([file_of(tmp_path, encode, 400, truth=truth)], capsys)
    assert code == 0 and found["by_name"]["effective_rank"]["passed"] is not None


def test_few_pairs_give_an_audit_but_no_ladder_or_bound(tmp_path: Path, capsys: Captured) -> None:
    code, found = answer([file_of(tmp_path, rotate, 100, truth=False)], capsys)
    assert code == 0 and "at least 200 pairs" in found["summary"] and "nothing can be certified" in found["summary"]
    assert "stationarity" in found["by_name"] and "bound" not in found["by_name"] and found["tables"] == []


def test_diagnosis_is_printed_first_and_metrics_only_with_full(tmp_path: Path, capsys: Captured) -> None:
    path = file_of(tmp_path, CORRUPTIONS["cubic warp"][1], 600)
    assert main(["certify", path]) == 0  # a failed certificate is a result, not an error
    short = capsys.readouterr().out
    assert short.startswith("Warp: ") and "--full" in short
    assert main(["certify", path, "--full"]) == 0
    full = capsys.readouterr().out
    assert len(full.splitlines()) > len(short.splitlines()) and "--full" not in full


def test_record_is_saved_to_the_given_folder(tmp_path: Path, capsys: Captured) -> None:
    answer([file_of(tmp_path, rotate), "--out", str(tmp_path / "kept")], capsys)
    (chapter,) = read_chapters(tmp_path / "kept")
    assert [panel.x for panel in chapter.figures[0].panels] == ["z", "h", "h_rotated"]
    turned = chapter.arrays["h_rotated"]
    np.testing.assert_allclose(turned, chapter.arrays["z"], atol=0.1)  # rotated back on held-out samples
    assert chapter.tables[0].title.startswith("Spectrum of the latents")
    assert json.loads((tmp_path / "kept/records/certificate.json").read_text())["diagnosis"]["kind"] == "rotation"


H = np.random.default_rng(0).standard_normal((300, 3))
NEXT = H[::-1].copy()
SPOILED = H.copy()
SPOILED[7, 1], SPOILED[9, 0] = np.nan, -np.inf


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({"h": H}, [], "missing h_next."),
        ({"z": H}, [], "missing h and h_next."),
        ({"h": H, "h_next": NEXT}, ["--rho", "1.5"], "is 1.5"),
        ({"h": H, "h_next": NEXT, "z": H}, ["--rho", "0"], "is 0.0"),
        ({"h": H, "h_next": NEXT}, ["--rho", "nan"], "is nan"),
        ({"h": H, "h_next": NEXT[:-1]}, [], "'h_next' has 299"),
        ({"h": H, "h_next": NEXT[:, :2]}, [], "(300, 3) and (300, 2)"),
        (
            {"h": SPOILED, "h_next": NEXT},
            [],
            "'h' has 2 ",
        ),
        ({"h": H, "h_next": SPOILED}, [], "'h_next' has 2 "),
        ({"h": H, "h_next": NEXT, "z": SPOILED}, [], "'z' has 2 "),
        ({"h": H, "h_next": NEXT, "x": SPOILED, "x_next": H}, [], "'x' has 2 "),
        ({"h": H.T, "h_next": NEXT.T}, [], "3 rows and 300 columns"),
        ({"h": H, "h_next": NEXT, "z": np.zeros((300, 400))}, [], "300 rows and 400 columns"),
        ({"h": H[:8], "h_next": NEXT[:8], "z": H[:8]}, [], "'h' must have at least 20 rows"),
        ({"h": H.reshape(30, 30), "h_next": NEXT.reshape(30, 30)}, [], "30 rows and 30 columns"),
        ({"h": H.reshape(36, 25), "h_next": NEXT.reshape(36, 25)}, ["--rho", "0.5"], "at least 26 rows to fit"),
        ({"h": 1e200 * H, "h_next": NEXT}, [], "too large to square. Divide it by a constant"),
        ({"h": H, "h_next": NEXT, "z": np.ones((300, 2))}, [], "'z' is constant"),
        ({"h": H, "h_next": NEXT, "groups": np.arange(299)}, [], "'groups' has 299"),
        ({"h": H, "h_next": NEXT, "groups": np.zeros((300, 2))}, [], "'groups' must be 1-D"),
        (
            {"h": H, "h_next": NEXT, "groups": np.where(np.arange(300) == 8, np.nan, np.arange(300) // 10)},
            [],
            "'groups' has 1 ",
        ),
        ({"h": H, "h_next": NEXT, "groups": np.arange(300) // 150}, [], "'groups' must have at least 3"),
        ({"h": H[:, 0], "h_next": NEXT[:, 0]}, [], "'h' must be 2-D"),
        ({"h": H[:0], "h_next": NEXT[:0]}, [], "'h' must have at least one row"),
        ({"h": H, "h_next": NEXT}, ["--samples", "5"], "samples is 5, but it is for runs"),
        ({"h": H, "h_next": H.copy(), "z": H}, [], "'h' and 'h_next' are equal"),
        ({"h": H, "h_next": H.copy()}, ["--rho", "0.9"], "'h' and 'h_next' are equal"),
    ],
)
def test_invalid_files_give_one_message(
    arrays: Arrays, words: list[str], message: str, tmp_path: Path, capsys: Captured
) -> None:
    write_arrays(tmp_path / "bad.npz", arrays)
    assert main(["certify", str(tmp_path / "bad.npz"), *words, "--out", str(tmp_path / "kept")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(("episodes", "firm"), [(6, False), (100, True)])
def test_a_diagnosis_of_few_episodes_begins_with_that(episodes: int, firm: bool) -> None:
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.standard_normal((episodes, 20, 3)), 1) * 0.05
    z = (z - z.mean((0, 1))) / z.std((0, 1))
    h = z @ rng.standard_normal((3, 3)) + 0.6 * rng.standard_normal(z.shape)
    certificate = ja.certify(list(h[:, :-1]), list(h[:, 1:]), list(z[:, :-1]), quick=True)
    assert certificate.diagnosis is not None and certificate.passed is False
    first = certificate.summary().split(":")[0]
    assert first.startswith("Too few") is not firm
    assert (certificate["r2"].high - certificate["r2"].low < 0.2) is firm


def test_quick_certificates_of_surplus_latents_leave_out_the_spectrum() -> None:
    rng = np.random.default_rng(0)
    z, noise = rng.standard_normal((2, 1000, 2))
    z_next = 0.9 * z + np.sqrt(0.19) * noise
    mix = rng.standard_normal((2, 3))
    h = z @ mix + 0.01 * rng.standard_normal((1000, 3))
    h_next = z_next @ mix + 0.01 * rng.standard_normal((1000, 3))
    found = {}
    for quick in (True, False):
        certificate = ja.certify(h, h_next, z, quick=quick)
        assert certificate.diagnosis is not None and certificate.diagnosis.kind == "surplus"
        found[quick] = {verdict.name for verdict in certificate.record.verdicts}
    assert "state_directions" in found[False]
    assert not {"state_directions", "minimal_r2_lost", "rho", "dimension"} & found[True]


@pytest.mark.parametrize(("rows", "firm"), [(30, False), (80, False), (400, True)])
@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_a_diagnosis_of_few_rows_begins_with_that(rows: int, noise: float, firm: bool) -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((rows, 2))
    h = z + noise * rng.standard_normal((rows, 2))
    certificate = ja.certify(h, 0.9 * h + 0.4 * rng.standard_normal((rows, 2)), z, quick=True)
    assert certificate.diagnosis is not None
    assert certificate.diagnosis.sentence.startswith("Too few") is not firm


def test_a_diagnosis_whose_share_is_uncertain_begins_with_that() -> None:
    """The state is recovered with certainty; how much of the latents it explains depends on a few groups."""
    rng = np.random.default_rng(0)
    for large, firm in ((0.1, True), (5.0, False)):
        z = rng.standard_normal((20, 40, 2))
        scale = np.where(np.arange(20) % 7 == 0, large, 0.1)[:, None, None]
        h = np.concatenate([z, scale * rng.standard_normal((20, 40, 1))], axis=2)
        h_next = 0.9 * h + 0.4 * rng.standard_normal(h.shape)
        certificate = ja.certify(list(h), list(h_next), list(z), quick=True)
        assert certificate["r2"].high - certificate["r2"].low < 0.2
        assert (certificate["r2_inverse"].high - certificate["r2_inverse"].low < 0.2) is firm
        assert certificate.diagnosis is not None
        assert certificate.diagnosis.sentence.startswith("Too few") is not firm
