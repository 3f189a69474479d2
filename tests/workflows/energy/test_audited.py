"""Anybody's matrix, or a saved energy, from a file to a record; and the repair of a matrix."""

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
from jepatlas.workflows.energy.fitted import pairwise

POINTS = GRID.observe(GRID.positions)
SQUARED = ((POINTS[:, None] - POINTS[None]) ** 2).sum(-1)


def verdict(record: Record, name: str) -> Verdict:
    return next(one for one in record.verdicts if one.name == name)


def of_file(path: Path, states: int = 256, **options: Any) -> Record:
    return audit_file(path, states=states, seed=0, **options)


def at_points(energy: Path, points: Path) -> Record:
    return audit_saved(energy, points, states=256, seed=0)


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "csv", "parquet"])
def test_a_matrix_in_every_format(kind: str, tmp_path: Path):
    write_arrays(tmp_path / f"m.{kind}", {"energies": TRUTH})
    record = of_file(tmp_path / f"m.{kind}")
    assert record.summary == "On 16 states this is a quasimetric." and record.title == f"Audit of m.{kind}"
    assert record.provenance["states"] == 16


def test_violations_are_found_with_their_triple(tmp_path: Path):
    write_arrays(tmp_path / "m.npy", {"energies": SQUARED})
    record = of_file(tmp_path / "m.npy")
    assert record.summary.startswith("On 16 states this is no quasimetric: triangle failed.")
    assert "through state" in verdict(record, "triangle").advice
    few = of_file(tmp_path / "m.npy", states=5)
    assert (few.provenance["states"], few.provenance["of"]) == (5, 16)


def test_points_and_truth_beside_it_or_in_a_file_of_their_own(tmp_path: Path):
    write_arrays(tmp_path / "all.npz", {"energies": 2 * TRUTH, "points": POINTS, "truth": TRUTH})
    write_arrays(tmp_path / "m.npy", {"energies": 2 * TRUTH})
    write_arrays(tmp_path / "points.npz", {"points": POINTS, "truth": TRUTH})
    beside, apart = of_file(tmp_path / "all.npz"), of_file(tmp_path / "m.npy", points=tmp_path / "points.npz")
    assert beside.verdicts == apart.verdicts
    assert verdict(beside, "median_ratio").value == 2 and verdict(beside, "floor").value > 0
    assert "Not passed: calibration_error" in beside.summary
    assert [figure["title"] for figure in beside.figures][1:] == [
        "Does it know where there is no way?",
        "Learned against exact energies",
    ]


def test_the_repair_is_the_closure(tmp_path: Path):
    broken = TRUTH.copy()
    broken[0, 5], broken[3, 2] = 9.0, np.inf
    write_arrays(tmp_path / "m.npy", {"energies": broken})
    record = of_file(tmp_path / "m.npy", repaired=tmp_path / "new" / "r.npz")
    np.testing.assert_array_equal(read_arrays(tmp_path / "new" / "r.npz")["energies"], closure(broken))
    assert of_file(tmp_path / "new" / "r.npz").summary == "On 16 states this is a quasimetric."
    moved = 9.0 - closure(broken)[0, 5]
    assert f"and {moved:.3g} at most" in record.summary


def test_a_repaired_file_keeps_what_else_the_file_holds(tmp_path: Path):
    given = {"energies": SQUARED, "points": POINTS, "truth": TRUTH, "names": np.array([f"s{k}" for k in range(16)])}
    write_arrays(tmp_path / "m.npz", given)
    of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npz")
    kept = read_arrays(tmp_path / "r.npz")
    np.testing.assert_array_equal(kept.pop("energies"), closure(SQUARED))
    assert kept.keys() == given.keys() - {"energies"}
    for name, array in kept.items():
        np.testing.assert_array_equal(array, given[name])
    with pytest.raises(InputError, match=r"r\.npy has room for one array, but there are energies, .*Name a \.npz file"):
        of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npy")
    assert not (tmp_path / "r.npy").exists()


def test_a_tolerance_of_ones_own(tmp_path: Path):
    write_arrays(tmp_path / "m.npy", {"energies": TRUTH + 0.01 * np.random.default_rng(0).random(TRUTH.shape)})
    save_energy(saved(head=SquaredL2Config()), tmp_path / "e.safetensors")
    write_arrays(tmp_path / "points.npy", {"h": POINTS})
    for states in (256, 5):
        exact, loose = (of_file(tmp_path / "m.npy", states=states, tolerance=given) for given in (None, 0.5))
        assert (verdict(exact, "identity").passed, verdict(loose, "identity").passed) == (False, True)
    asked = tmp_path / "e.safetensors", tmp_path / "points.npy"
    exact, loose = (audit_saved(*asked, states=256, seed=0, tolerance=given) for given in (None, 0.999))
    assert (verdict(exact, "triangle").passed, verdict(loose, "triangle").passed) == (False, True)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="tolerance"):
            of_file(tmp_path / "m.npy", tolerance=bad)


BAD = {
    "must be square": {"energies": TRUTH[:9]},
    "has 16 NaN": {"energies": np.where(np.eye(16) > 0, np.nan, TRUTH)},
    "there are 16 rows of energies and 9 rows of points": {"energies": TRUTH, "points": POINTS[:9]},
    "which of them is the matrix? Call it 'energies'": {"distances": TRUTH, "points": POINTS},
    "must hold real numbers": {"energies": TRUTH.astype(str)},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_matrices_are_refused_with_their_file(message: str, tmp_path: Path):
    write_arrays(tmp_path / "m.npz", BAD[message])
    with pytest.raises(InputError) as refusal:
        of_file(tmp_path / "m.npz", repaired=tmp_path / "r.npz")
    assert message in str(refusal.value) and "m.npz" in str(refusal.value)
    assert not (tmp_path / "r.npz").exists()


def test_a_saved_energy_at_points(tmp_path: Path):
    one = saved()
    save_energy(one, tmp_path / "e.safetensors")
    exact = pairwise(one.model(), POINTS)
    write_arrays(tmp_path / "truth.npz", {"points": POINTS, "truth": exact})
    write_arrays(tmp_path / "points.npy", {"h": POINTS})
    write_arrays(tmp_path / "latents.npz", {"h": POINTS, "ids": np.arange(16)})
    for name in ("truth.npz", "points.npy", "latents.npz"):
        record = at_points(tmp_path / "e.safetensors", tmp_path / name)
        assert "this is a quasimetric" in record.summary and verdict(record, "midpoints").passed
    known = at_points(tmp_path / "e.safetensors", tmp_path / "truth.npz")
    assert verdict(known, "median_ratio").value == pytest.approx(1)


def test_a_saved_energy_that_is_none_and_one_that_was_ported(tmp_path: Path):
    write_arrays(tmp_path / "points.npy", {"h": np.random.default_rng(0).standard_normal((20, 3))})
    for one in (saved(), saved(head=SquaredL2Config())):
        save_energy(one.ported(linear_map(2, 3)), tmp_path / "e.safetensors")
        record = at_points(tmp_path / "e.safetensors", tmp_path / "points.npy")
        caught = "no quasimetric: triangle, midpoints failed" in record.summary
        assert caught != one.model().guaranteed_quasimetric


@pytest.mark.parametrize(
    ("arrays", "changes", "message"),
    [
        ({"points": POINTS[:, :1]}, {}, "the energy takes points (n, 2), but these are (16, 1)"),
        ({"a": POINTS, "b": POINTS}, {}, "holds a, b: which of them are the points?"),
        ({"points": POINTS[:1]}, {}, "at least 2 states"),
        ({"points": np.full((16, 2), np.nan)}, {}, "'points' has 32 values that are NaN"),
        ({"points": POINTS, "truth": TRUTH[:9, :9]}, {}, "16 rows of points and 9 rows of true energies"),
        ({"points": POINTS, "truth": TRUTH}, {"discount": 0.9}, "the energy is discounted (γ = 0.9)"),
    ],
)
def test_points_that_do_not_fit(arrays: dict, changes: dict, message: str, tmp_path: Path):
    save_energy(saved(**changes), tmp_path / "e.safetensors")
    write_arrays(tmp_path / "points.npz", arrays)
    with pytest.raises(InputError) as refusal:
        at_points(tmp_path / "e.safetensors", tmp_path / "points.npz")
    assert message in str(refusal.value) and "points.npz" in str(refusal.value)
