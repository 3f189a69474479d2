"""Evaluation of a learned energy against the exact energies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from workflows.energy.tiny import GRID, TRUTH, recipe, write_steps

from jepatlas.core.arrays import read_arrays
from jepatlas.core.figures import Landscape
from jepatlas.energy import ExpectileConfig, L2Config
from jepatlas.recipes import StepFile, WalkConfig
from jepatlas.workflows.energy import EnergyEvaluation, evaluate_fitted, evaluate_run, load_energy_file, load_fitted
from jepatlas.workflows.energy.ground_truth import GroundTruth
from jepatlas.workflows.runs import start_run

APART = ~np.eye(16, dtype=bool)


@pytest.fixture(scope="module")
def judged(folder: Path) -> EnergyEvaluation:
    return evaluate_run(folder)


def median_ratio(judged: EnergyEvaluation, truth: np.ndarray) -> float:
    known = APART & np.isfinite(truth)
    return float(np.median(judged.energies[known] / truth[known]))


def test_the_record_and_the_energy_are_saved(folder: Path, judged: EnergyEvaluation):
    record = json.loads((folder / "records" / "energy.json").read_text())
    assert record["title"] == "Energy of run" and record["summary"] == judged.record.summary
    names = {verdict["name"] for verdict in record["verdicts"]}
    assert {"triangle", "midpoints", "one_way_auc", "spearman", "step_scale"} <= names
    assert load_energy_file(folder / "energy.safetensors").threshold == judged.fitted.threshold
    assert [figure["kind"] for figure in record["figures"]] == ["landscape", "curves", "curves", "curves"]


def test_verdicts_compare_with_the_exact_energies(judged: EnergyEvaluation):
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, TRUTH), rel=1e-3)
    one_way = np.isfinite(TRUTH) & np.isinf(TRUTH.T)
    share = np.mean(judged.energies.T[one_way] > judged.energies[one_way])
    assert judged.audit["one_way_order"].value == pytest.approx(share)
    assert f"{share:.1%}" in judged.record.summary
    assert "On 16 states the iqe energy is a quasimetric" in judged.record.summary


def test_the_summary_has_the_errors_of_the_reachability_decision(judged: EnergyEvaluation):
    """The transitive closure of the pairs below the threshold, computed by hand."""
    assert "no pair is called unreachable" in judged.record.summary  # after so short a run
    fitted = replace(judged.fitted, threshold=0.9 * float(judged.energies[APART].min()))
    judged = evaluate_fitted(fitted, judged.ground_truth, title="With a decision")
    assert (np.isfinite(judged.record.arrays["learned_to"]).sum(), judged.audit.passed) == (1, False)
    fitted = replace(judged.fitted, threshold=float(np.quantile(judged.energies[APART], 0.1)))
    judged = evaluate_fitted(fitted, judged.ground_truth, title="With another")
    assert "ways_missed" in {verdict.name for verdict in judged.record.verdicts}
    reach = judged.energies <= fitted.threshold
    for via in range(16):
        reach |= reach[:, [via]] & reach[[via]]
    unreachable, reachable = np.isinf(TRUTH), np.isfinite(TRUTH) & APART
    summary = judged.record.summary
    assert f"{(~reach)[APART].mean():.1%} of the pairs are called unreachable" in summary
    assert f"{(~reach)[reachable].mean():.1%} of the reachable ones" in summary
    assert f"{reach[unreachable].mean():.1%} of the unreachable" in summary


def test_landscapes_show_columns_and_rows_of_the_matrices(folder: Path, judged: EnergyEvaluation):
    arrays = read_arrays(folder / "records" / "energy.npz")
    figure = judged.record.figures[0]
    assert isinstance(figure, Landscape)
    goal = (figure.panels[0].marks or [])[0].at
    number = int(np.flatnonzero((GRID.positions == goal[::-1]).all(1))[0])
    np.testing.assert_array_equal(arrays["exact_to"].ravel(), TRUTH[:, number].astype(np.float32))
    np.testing.assert_array_equal(arrays["exact_from"].ravel(), TRUTH[number].astype(np.float32))
    finite = np.isfinite(arrays["learned_to"].ravel())
    np.testing.assert_allclose(arrays["learned_to"].ravel()[finite], judged.energies[finite, number], rtol=1e-5)
    way = arrays["exact_way"]
    assert (way[-1] == goal).all() and (np.abs(np.diff(way, axis=0)).sum(1) == 1).all()
    assert len(way) == np.where(np.isfinite(TRUTH[:, number]), TRUTH[:, number], 0).max() + 1


def test_the_tolerance_is_used(judged: EnergyEvaluation):
    loose = evaluate_fitted(judged.fitted, judged.ground_truth, title="Loose", tolerance=0.25)
    assert loose.audit["triangle"].threshold == 0.25 and judged.audit["triangle"].threshold != 0.25


def test_another_folder_and_seed(folder: Path, judged: EnergyEvaluation, tmp_path: Path):
    other = evaluate_run(folder, seed=3, out=tmp_path / "out")
    assert (tmp_path / "out" / "records" / "energy.json").exists() and (tmp_path / "out/energy.safetensors").exists()
    assert other.audit["median_ratio"].value == judged.audit["median_ratio"].value  # all states are evaluated
    assert other.audit["median_ratio"].low != judged.audit["median_ratio"].low


def test_discounted_values_are_compared_with_the_discounted_truth(tmp_path: Path):
    """A path of n steps has the discounted cost 1 + γ + … + γⁿ⁻¹."""
    start_run(recipe(steps=60, learning=ExpectileConfig(gamma=0.8)), tmp_path / "run")
    judged = evaluate_run(tmp_path / "run")
    worth = np.cumsum(np.r_[0, 0.8 ** np.arange(20)])
    exact = np.where(np.isfinite(TRUTH), worth[np.where(np.isfinite(TRUTH), TRUTH, 0).astype(int)], np.inf)
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, exact), rel=1e-3)
    assert "discounted exact energies" in judged.record.summary
    assert "step_scale" not in {verdict.name for verdict in judged.record.verdicts}
    assert judged.audit["calibration_error"].passed is False  # after so short a run
    advice = judged.audit["calibration_error"].advice
    assert "γ = 0.8" in advice and "--learning qrl" in advice


def test_discounting_uses_the_unit_of_cost(tmp_path: Path):
    """Steps that cost 5 each: the discount is per step, the value in units of cost."""
    walk = GRID.walk(30, 10, seed=0)
    points = GRID.observe(GRID.positions)
    path = write_steps(tmp_path / "s.npz", cost=5 * walk.cost, points=points, truth=5 * TRUTH)
    given = recipe(steps=20, learning=ExpectileConfig(gamma=0.8), source=StepFile(str(path)), walk=WalkConfig())
    start_run(given, tmp_path / "run")
    judged = evaluate_run(tmp_path / "run")
    exact = np.where(np.isfinite(TRUTH), 5 * (1 - 0.8**TRUTH) / 0.2, np.inf)
    assert judged.audit["median_ratio"].value == pytest.approx(median_ratio(judged, exact), rel=1e-3)


def test_without_a_truth_the_axioms_are_checked(tmp_path: Path):
    path = write_steps(tmp_path / "s.npz")
    start_run(recipe(steps=5, head=L2Config(), source=StepFile(str(path)), walk=WalkConfig()), tmp_path / "run")
    judged = evaluate_run(tmp_path / "run")
    names = {verdict.name for verdict in judged.record.verdicts}
    assert "spearman" not in names and {"triangle", "asymmetry"} <= names and judged.passed
    assert judged.audit["asymmetry"].value == pytest.approx(0, abs=1e-6)
    assert "called unreachable" in judged.record.summary
    assert not judged.record.arrays  # the states have no positions


def test_an_energy_can_be_evaluated_at_other_states(folder: Path):
    fitted = load_fitted(folder)
    judged = evaluate_fitted(fitted, GroundTruth(GRID.observe(GRID.positions[:6]), TRUTH[:6, :6]), title="Six")
    assert judged.energies.shape == (6, 6) and judged.record.title == "Six" and not judged.record.arrays
