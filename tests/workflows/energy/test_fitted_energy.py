"""The energy of a run: calibration on held-out steps, and the reachability decision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from workflows.energy.tiny import GRID, recipe

from jepatlas.core.errors import InputError
from jepatlas.energy import IEJEPA, ExpectileConfig, IEJEPAConfig
from jepatlas.objectives import CovarianceConfig
from jepatlas.recipes import AgentConfig
from jepatlas.workflows.energy import FittedEnergy, load_fitted
from jepatlas.workflows.energy.fitted_energy import all_pairs
from jepatlas.workflows.runs import start_run

X = GRID.observe(GRID.positions)


@pytest.fixture(scope="module")
def fitted(folder: Path) -> FittedEnergy:
    return load_fitted(folder)


def rows(fitted: FittedEnergy, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Energies from the rows of x to those of y, one by one."""
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in (x, y)]
    with torch.no_grad():
        return np.array([float(fitted.energy(a, b)) for a, b in zip(*tensors, strict=True)])


def test_held_out_steps_have_the_length_of_their_cost(fitted: FittedEnergy):
    held = fitted.data.held
    assert rows(fitted, held.x, held.x_next).sum() == pytest.approx(held.cost.sum(), rel=1e-4)
    assert fitted.scale is not None and float(fitted.energy.scale) == pytest.approx(fitted.scale.value)
    assert not set(held.episode) & set(fitted.data.learnt.episode)


def test_the_matrix_is_from_rows_to_columns(fitted: FittedEnergy):
    pairs = np.array([(i, j) for i in range(len(X)) for j in range(len(X))])
    expected = rows(fitted, X[pairs[:, 0]], X[pairs[:, 1]]).reshape(len(X), len(X))
    np.testing.assert_allclose(fitted.matrix(X), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fitted.between(X[:3], X[5:7]), expected[:3, 5:7], rtol=1e-5, atol=1e-5)
    assert not np.allclose(expected, expected.T)


def test_a_short_run_has_no_gap_and_an_infinite_threshold(fitted: FittedEnergy):
    assert fitted.threshold == np.inf and fitted.missed.value == 0


def test_the_missed_share_is_that_of_held_out_episodes(folder: Path, monkeypatch):
    """A threshold within the known pairs, which are then counted one by one."""
    asked = {}

    def threshold(known: np.ndarray, any_pairs: np.ndarray, step: float) -> float:
        asked.update(known=known, any_pairs=any_pairs, step=step)
        return float(np.quantile(known, 0.8))

    monkeypatch.setattr("jepatlas.workflows.energy.fitted_energy.unreachable_threshold", threshold)
    fitted = load_fitted(folder)
    held = fitted.data.held
    assert asked["step"] == pytest.approx(rows(fitted, held.x, held.x_next).mean(), rel=1e-5)
    assert asked["known"].max() <= fitted.matrix(X).max() + 1e-5 and np.median(asked["any_pairs"]) > asked["step"]
    wrong = []
    for first in range(len(held.x)):
        last = [row for row in range(first, len(held.x)) if held.episode[row] == held.episode[first]]
        energies = rows(fitted, np.repeat(held.x[first : first + 1], len(last), 0), held.x_next[last])
        wrong.append(np.mean(energies > fitted.threshold))
    assert fitted.missed.value == pytest.approx(np.mean(wrong), abs=0.01)
    assert fitted.missed.low <= fitted.missed.value <= fitted.missed.high


def test_the_saved_energy_gives_the_same_energies(fitted: FittedEnergy):
    one = fitted.saved()
    assert (one.dim, one.threshold, one.spec.discount) == (2, fitted.threshold, None)
    np.testing.assert_array_equal(all_pairs(one.model(), X), fitted.matrix(X))


def test_discounted_values_are_not_calibrated(tmp_path: Path):
    start_run(recipe(steps=5, learning=ExpectileConfig(gamma=0.9)), tmp_path / "run")
    found = load_fitted(tmp_path / "run")
    assert found.scale is None and float(found.energy.scale) == 1 and found.gamma == 0.9
    assert found.saved().spec.discount == 0.9


@pytest.mark.parametrize("mode", ["joint", "separate"])
def test_on_the_latents_of_an_agent(mode, tmp_path: Path):
    agent = AgentConfig(dim=3, objective=CovarianceConfig(), together=IEJEPAConfig(mode=mode))
    start_run(recipe(steps=5, agent=agent), tmp_path / "run")
    found = load_fitted(tmp_path / "run")
    h = found.latents(X)
    assert h.shape == (16, 3) and found.saved().dim == 3
    np.testing.assert_allclose(found.matrix(X), all_pairs(found.saved().model(), h), rtol=1e-6)
    assert isinstance(found.objective, IEJEPA)
    with torch.no_grad():
        asked = found.objective.energy(*(torch.as_tensor(X[[i]], dtype=torch.float32) for i in (0, 9)))
    assert float(asked) == pytest.approx(found.matrix(X)[0, 9], rel=1e-5)


def test_a_folder_that_is_not_a_run_is_rejected(tmp_path: Path):
    with pytest.raises(InputError, match="run folder"):
        load_fitted(tmp_path)
