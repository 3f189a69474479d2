"""Audits of matrices and saved energies in files, and the repair of a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from workflows.energy.tiny import GRID, TRUTH, linear_map, saved

from jepatlas.core.arrays import read_arrays, write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.records import Record, Verdict
from jepatlas.energy import SquaredL2Config, closure
from jepatlas.workflows.energy import audit_file, audit_saved, save_energy
from jepatlas.workflows.energy.fitted_energy import all_pairs

POINTS = GRID.observe(GRID.positions)
SQUARED = ((POINTS[:, None] - POINTS[None]) ** 2).sum(-1)


def verdict(record: Record, name: str) -> Verdict:
    return next(one for one in record.verdicts if one.name == name)


def failed(record: Record) -> set[str]:
    return {one.name for one in record.verdicts if one.passed is False}


def of_file(path: Path, states: int = 256, **options: Any) -> Record:
    return audit_file(path, states=states, seed=0, **options)


def at_points(energy: Path, points: Path) -> Record:
    return audit_saved(energy, points, states=256, seed=0)


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "csv", "parquet"])
def test_a_matrix_in_every_format(kind: str, tmp_path: Path):
    write_arrays(tmp_path / f"m.{kind}", {"energies": TRUTH})
    record = of_file(tmp_path / f"m.{kind}")
    assert failed(record) == set() and record.title == f"Audit of m.{kind}"
    assert record.provenance["states"] == 16


def test_violations_name_a_triple(tmp_path: Path):
    write_arrays(tmp_path / "m.npy", {"energies": SQUARED})
    record = of_file(tmp_path / "m.npy")
    assert failed(record) == {"triangle"} and "triangle" in record.summary
    assert "through state" in verdict(record, "triangle").advice
    few = of_file(tmp_path / "m.npy", states=5)
    assert (few.provenance["states"], few.provenance["of"]) == (5, 16)


def test_points_and_truth_in_the_same_or_another_file(tmp_path: Path):
    write_arrays(tmp_path / "all.npz", {"energies": 2 * TRUTH, "points": POINTS, "truth": TRUTH})
    write_arrays(tmp_path / "m.npy", {"energies": 2 * TRUTH})
    write_arrays(tmp_path / "points.npz", {"points": POINTS, "truth": TRUTH})
    beside, apart = of_file(tmp_path / "all.npz"), of_file(tmp_path / "m.npy", points=tmp_path / "points.npz")
    assert beside.verdicts == apart.verdicts
    assert verdict(beside, "median_ratio").value == 2 and verdict(beside, "floor").value > 0
    assert "calibration_error" in beside.summary
    assert len(beside.figures) == 3 and len(apart.figures) == 3


def test_the_repair_is_the_closure(tmp_path: Path):
    broken = TRUTH.copy()
    broken[0, 5], broken[3, 2] = 9.0, np.inf
    write_arrays(tmp_path / "m.npy", {"energies": broken})
    record = of_file(tmp_path / "m.npy", repaired=tmp_path / "new" / "r.npz")
    np.testing.assert_array_equal(read_arrays(tmp_path / "new" / "r.npz")["energies"], closure(broken))
    assert failed(of_file(tmp_path / "new" / "r.npz")) == set()
    moved = 9.0 - closure(broken)[0, 5]
    assert f"{moved:.3g}" in record.summary


def test_a_repaired_file_keeps_the_other_arrays(tmp_path: Path):
    given = {"energies": SQUARED, "points": POINTS, "truth": TRUTH, "names": np.array([f"s{k}" for k in range(16)])}
    write_arrays(tmp_path / "m.npz", given)
    of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npz")
    kept = read_arrays(tmp_path / "r.npz")
    np.testing.assert_array_equal(kept.pop("energies"), closure(SQUARED))
    assert kept.keys() == given.keys() - {"energies"}
    for name, array in kept.items():
        np.testing.assert_array_equal(array, given[name])
    with pytest.raises(InputError, match=r"r\.npy .*\.npz"):
        of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npy")
    assert not (tmp_path / "r.npy").exists()


def test_the_tolerance_is_used(tmp_path: Path):
    write_arrays(tmp_path / "m.npy", {"energies": TRUTH + 0.01 * np.random.default_rng(0).random(TRUTH.shape)})
    save_energy(saved(head=SquaredL2Config()), tmp_path / "e.safetensors")
    write_arrays(tmp_path / "points.npy", {"h": POINTS})
    for states in (256, 5):
        exact, loose = (of_file(tmp_path / "m.npy", states=states, tolerance=given) for given in (None, 0.5))
        assert (verdict(exact, "identity").passed, verdict(loose, "identity").passed) == (False, True)
    files = tmp_path / "e.safetensors", tmp_path / "points.npy"
    exact, loose = (audit_saved(*files, states=256, seed=0, tolerance=given) for given in (None, 0.999))
    assert (verdict(exact, "triangle").passed, verdict(loose, "triangle").passed) == (False, True)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="tolerance"):
            of_file(tmp_path / "m.npy", tolerance=bad)


BAD = {
    "square": {"energies": TRUTH[:9]},
    "16 NaN": {"energies": np.where(np.eye(16) > 0, np.nan, TRUTH)},
    "9 rows": {"energies": TRUTH, "points": POINTS[:9]},
    "'energies'": {"distances": TRUTH, "points": POINTS},
    "real numbers": {"energies": TRUTH.astype(str)},
}


@pytest.mark.parametrize("message", BAD)
def test_invalid_matrices_are_rejected_with_their_file(message: str, tmp_path: Path):
    write_arrays(tmp_path / "m.npz", BAD[message])
    with pytest.raises(InputError) as refusal:
        of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npz")
    assert message in str(refusal.value) and "m.npz" in str(refusal.value)
    assert not (tmp_path / "r.npz").exists()


def test_a_saved_energy_at_points(tmp_path: Path):
    one = saved()
    save_energy(one, tmp_path / "e.safetensors")
    exact = all_pairs(one.model(), POINTS)
    write_arrays(tmp_path / "truth.npz", {"points": POINTS, "truth": exact})
    write_arrays(tmp_path / "points.npy", {"h": POINTS})
    write_arrays(tmp_path / "latents.npz", {"h": POINTS, "ids": np.arange(16)})
    for name in ("truth.npz", "points.npy", "latents.npz"):
        record = at_points(tmp_path / "e.safetensors", tmp_path / name)
        assert failed(record) == set() and verdict(record, "midpoints").passed
    known = at_points(tmp_path / "e.safetensors", tmp_path / "truth.npz")
    assert verdict(known, "median_ratio").value == pytest.approx(1)


def test_ported_energies_and_energies_that_are_not_quasimetrics(tmp_path: Path):
    write_arrays(tmp_path / "points.npy", {"h": np.random.default_rng(0).standard_normal((20, 3))})
    for one in (saved(), saved(head=SquaredL2Config())):
        save_energy(one.ported(linear_map(2, 3)), tmp_path / "e.safetensors")
        record = at_points(tmp_path / "e.safetensors", tmp_path / "points.npy")
        expected = set() if one.model().guaranteed_quasimetric else {"triangle", "midpoints"}
        assert failed(record) == expected and all(name in record.summary for name in expected)


@pytest.mark.parametrize(
    ("arrays", "changes", "message"),
    [
        ({"points": POINTS[:, :1]}, {}, "(n, 2)"),
        ({"a": POINTS, "b": POINTS}, {}, "a, b"),
        ({"points": POINTS[:1]}, {}, "2 states"),
        ({"points": np.full((16, 2), np.nan)}, {}, "32 NaN"),
        ({"points": POINTS, "truth": TRUTH[:9, :9]}, {}, "9 rows"),
        ({"points": POINTS, "truth": TRUTH}, {"discount": 0.9}, "γ = 0.9"),
    ],
)
def test_invalid_points_are_rejected(arrays: dict, changes: dict, message: str, tmp_path: Path):
    save_energy(saved(**changes), tmp_path / "e.safetensors")
    write_arrays(tmp_path / "points.npz", arrays)
    with pytest.raises(InputError) as refusal:
        at_points(tmp_path / "e.safetensors", tmp_path / "points.npz")
    assert message in str(refusal.value) and "points.npz" in str(refusal.value)
