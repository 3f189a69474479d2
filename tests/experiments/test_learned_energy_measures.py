"""What the energy experiments measure with, each against its definition."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jepatlas.experiments import EXPERIMENTS, Result
from jepatlas.experiments.energy.learned_energies import energy_trial, quasimetric, run
from jepatlas.experiments.energy.ported_energy import agreement
from jepatlas.experiments.energy.prediction_energy import fit_predictor


def test_what_two_experiments_ask_for_has_one_name():
    """The heads and the coverage of the one-way grid are runs of the other experiments, too."""
    jobs = {
        name: {trial.job.name for trial in EXPERIMENTS[name].trials("small", 0)}
        for name in ("one-way-reachability", "energy-heads", "energy-coverage", "energy-calibration")
    }
    assert len(set.intersection(*jobs.values())) == 3, "three seeds of IQE on the grid"
    assert len(jobs["one-way-reachability"] & jobs["energy-heads"]) == 9, "IQE, MRN and L2"


@pytest.fixture(scope="module")
def half_covered(tmp_path_factory: pytest.TempPathFactory) -> Result:
    trial = energy_trial("tiny", 0, coverage=0.5)
    folder = tmp_path_factory.mktemp("energy") / "run"
    record = run(trial.settings, str(folder))
    return Result(trial, folder, record["status"], record)


def test_a_trial_says_what_it_was_before_calibration(half_covered: Result):
    """All energies have one factor, so the ratio before is the ratio after over that factor; steps cost 1."""
    before = half_covered.value("median_ratio") / half_covered.value("step_scale")
    assert half_covered.value("uncalibrated_ratio") == pytest.approx(before)
    assert quasimetric(half_covered)


def test_energies_are_held_against_what_was_seen_too(half_covered: Result):
    """With half of the steps ways are longer, so the same energies are a smaller share of them."""
    assert half_covered.value("seen_median_ratio") < half_covered.value("median_ratio")
    assert np.isfinite(half_covered.value("seen_spearman"))
    assert 0.5 < half_covered.value("symmetric_ceiling") < 1


def test_a_trial_that_was_finished_is_judged_again_without_training(half_covered: Result):
    record = run(half_covered.trial.settings, str(half_covered.folder))
    assert record["step"] == half_covered.record["step"]
    again = Result(half_covered.trial, half_covered.folder, record["status"], record)
    assert again.value("spearman") == half_covered.value("spearman")


def test_agreement_by_hand():
    """Six ordered pairs: three in reach, in the order 1 2 3 by truth and 1 3 2 by energy; three out of reach."""
    inf = np.inf
    truth = np.array([[0, 1, 2], [inf, 0, 3], [inf, inf, 0]])
    energies = np.array([[0.0, 1, 3], [9, 0, 2], [9, 2.5, 0]])
    order, auc = agreement(energies, truth)
    assert order == pytest.approx(0.5)
    assert auc == pytest.approx(8 / 9), "2.5 is below the 3 of a pair that is in reach"


def test_the_predictor_learns_the_mean_of_what_follows():
    rng = np.random.default_rng(0)
    h = rng.uniform(-1, 1, (4000, 2))
    follows = np.column_stack([h[:, 0] ** 2, -h[:, 1]])
    predictor = fit_predictor(h, follows + 0.1 * rng.standard_normal(h.shape), 400, seed=0)
    predicted = predictor(torch.as_tensor(h, dtype=torch.float32)).numpy()
    assert np.abs(predicted - follows).mean() < 0.05
    assert not any(parameter.requires_grad for parameter in predictor.parameters())


def test_the_trial_of_a_ported_energy_names_no_file():
    """Its settings must be the same on every machine; the file is written by the trial, in its own folder."""
    (trial,) = EXPERIMENTS["ported-energy"].trials("tiny", 0)
    assert trial.settings["energy"]["source"] == {"kind": "file", "path": "", "sha256": None}
    assert not Path(trial.job.name).is_absolute()
