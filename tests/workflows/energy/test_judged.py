"""The record of a learned energy: held against the truth that it can be held against."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from workflows.energy.tiny import GRID, TRUTH, recipe, write_steps

from jepatlas.core.arrays import read_arrays
from jepatlas.energy import ExpectileConfig, L2Config
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.workflows.energy import JudgedEnergy, judge_fitted, judge_run, load_energy_file, load_fitted
from jepatlas.workflows.energy.ground import Ground
from jepatlas.workflows.runs import start_run

APART = ~np.eye(16, dtype=bool)


@pytest.fixture(scope="module")
def judged(folder: Path) -> JudgedEnergy:
    return judge_run(folder)


def median_ratio(judged: JudgedEnergy, truth: np.ndarray) -> float:
    known = APART & np.isfinite(truth)
    return float(np.median(judged.energies[known] / truth[known]))


def test_the_record_and_the_energy_are_kept(folder: Path, judged: JudgedEnergy):
    record = json.loads((folder / "records" / "energy.json").read_text())
    assert record["title"] == "Energy of run" and record["summary"] == judged.record.summary
    names = {verdict["name"] for verdict in record["verdicts"]}
    assert {"triangle", "midpoints", "one_way_auc", "spearman", "step_scale"} <= names
    assert load_energy_file(folder / "energy.safetensors").threshold == judged.fitted.threshold
    assert [figure["kind"] for figure in record["figures"]] == ["landscape", "curves", "curves", "curves"]


def test_numbers_are_against_the_exact_energies(judged: JudgedEnergy):
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, TRUTH), rel=1e-3)
    one_way = np.isfinite(TRUTH) & np.isinf(TRUTH.T)
    knows = np.mean(judged.energies.T[one_way] > judged.energies[one_way])
    assert judged.audit["one_way_order"].value == pytest.approx(knows)
    assert f"of {knows:.1%} of them it has the direction right" in judged.record.summary
    assert "The iqe energy is a quasimetric on 16 states" in judged.record.summary


def test_what_is_called_unreachable_is_said_with_its_errors(judged: JudgedEnergy):
    """The decision closed by hand: whatever a chain of pairs below the threshold leads to can be reached."""
    assert "nothing is called so" in judged.record.summary  # after so short a run
    fitted = replace(judged.fitted, threshold=0.9 * float(judged.energies[APART].min()))
    judged = judge_fitted(fitted, judged.ground, title="With a decision")
    assert (np.isfinite(judged.record.arrays["learned_to"]).sum(), judged.audit.passed) == (1, False)
    fitted = replace(judged.fitted, threshold=float(np.quantile(judged.energies[APART], 0.1)))
    judged = judge_fitted(fitted, judged.ground, title="With another")
    assert "ways_missed" in {verdict.name for verdict in judged.record.verdicts}
    reach = judged.energies <= fitted.threshold
    for via in range(16):
        reach |= reach[:, [via]] & reach[[via]]
    no_way, way = np.isinf(TRUTH), np.isfinite(TRUTH) & APART  # identical pairs are no pairs
    assert (
        f"transitively: {(~reach)[APART].mean():.1%} of them, with {reach[no_way].mean():.1%} of unreachable and "
        f"{(~reach)[way].mean():.1%} of reachable pairs called wrongly" in judged.record.summary
    )


def test_landscapes_are_columns_and_rows_of_the_matrices(folder: Path, judged: JudgedEnergy):
    arrays = read_arrays(folder / "records" / "energy.npz")
    goal = judged.record.figures[0]["panels"][0]["marks"][0]["at"]
    number = int(np.flatnonzero((GRID.positions == goal[::-1]).all(1))[0])
    np.testing.assert_array_equal(arrays["exact_to"].ravel(), TRUTH[:, number].astype(np.float32))
    np.testing.assert_array_equal(arrays["exact_from"].ravel(), TRUTH[number].astype(np.float32))
    finite = np.isfinite(arrays["learned_to"].ravel())
    np.testing.assert_allclose(arrays["learned_to"].ravel()[finite], judged.energies[finite, number], rtol=1e-5)
    way = arrays["exact_way"]
    assert (way[-1] == goal).all() and (np.abs(np.diff(way, axis=0)).sum(1) == 1).all()
    assert len(way) == np.where(np.isfinite(TRUTH[:, number]), TRUTH[:, number], 0).max() + 1


def test_a_tolerance_of_ones_own(judged: JudgedEnergy):
    loose = judge_fitted(judged.fitted, judged.ground, title="Loose", tolerance=0.25)
    assert loose.audit["triangle"].threshold == 0.25 and judged.audit["triangle"].threshold != 0.25


def test_elsewhere_and_with_another_seed(folder: Path, judged: JudgedEnergy, tmp_path: Path):
    other = judge_run(folder, seed=3, out=tmp_path / "out")
    assert (tmp_path / "out" / "records" / "energy.json").exists() and (tmp_path / "out/energy.safetensors").exists()
    assert other.audit["median_ratio"].value == judged.audit["median_ratio"].value  # all states are judged
    assert other.audit["median_ratio"].low != judged.audit["median_ratio"].low


def test_discounted_values_are_held_against_discounted_truth(tmp_path: Path):
    """A way of n steps is worth 1 + γ + … + γⁿ⁻¹ of them."""
    start_run(recipe(steps=60, learning=ExpectileConfig(gamma=0.8)), tmp_path / "run")
    judged = judge_run(tmp_path / "run")
    worth = np.cumsum(np.r_[0, 0.8 ** np.arange(20)])
    exact = np.where(np.isfinite(TRUTH), worth[np.where(np.isfinite(TRUTH), TRUTH, 0).astype(int)], np.inf)
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, exact), rel=1e-3)
    assert "Against the discounted exact truth" in judged.record.summary
    assert "step_scale" not in {verdict.name for verdict in judged.record.verdicts}
    assert judged.audit["calibration_error"].passed is False  # after so short a run
    advice = judged.audit["calibration_error"].advice
    assert "discounted by γ = 0.8 a step, and so was the truth" in advice and "--learning qrl" in advice


def test_costs_in_another_unit_are_discounted_in_it(tmp_path: Path):
    """Steps that cost 5 each: the discount is by the step, and the value in units of cost."""
    walk = GRID.walk(30, 10, seed=0)
    points = GRID.observe(GRID.positions)
    path = write_steps(tmp_path / "s.npz", cost=5 * walk.cost, points=points, truth=5 * TRUTH)
    given = recipe(steps=20, learning=ExpectileConfig(gamma=0.8), source=StepFile(str(path)), walk=WalkConfig())
    start_run(given, tmp_path / "run")
    judged = judge_run(tmp_path / "run")
    exact = np.where(np.isfinite(TRUTH), 5 * (1 - 0.8**TRUTH) / 0.2, np.inf)
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, exact), rel=1e-3)


def test_without_truth_the_axioms_remain(tmp_path: Path):
    path = write_steps(tmp_path / "s.npz")
    start_run(recipe(steps=5, head=L2Config(), source=StepFile(str(path)), walk=WalkConfig()), tmp_path / "run")
    judged = judge_run(tmp_path / "run")
    names = {verdict.name for verdict in judged.record.verdicts}
    assert "spearman" not in names and {"triangle", "asymmetry"} <= names and judged.passed
    assert judged.audit["asymmetry"].value == pytest.approx(0, abs=1e-6)
    assert "of them." in judged.record.summary or "nothing is called so" in judged.record.summary
    assert not judged.record.arrays  # there is no plane to draw it in


def test_an_energy_may_be_judged_on_other_ground(folder: Path):
    fitted = load_fitted(folder)
    judged = judge_fitted(fitted, Ground(GRID.observe(GRID.positions[:6]), TRUTH[:6, :6]), title="Six")
    assert judged.energies.shape == (6, 6) and judged.record.title == "Six" and not judged.record.arrays
