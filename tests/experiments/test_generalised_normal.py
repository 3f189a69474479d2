"""The rule by which a curve peaks, and the linear R² that theory predicts."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result, Trial, as_verdicts
from jepatlas.experiments.identifiability.generalised_normal import EXPERIMENT
from jepatlas.experiments.identifiability.generalised_normal_runs import SCALES, run
from jepatlas.worlds import CopulaGeneralisedNormal


def results(ends: float) -> list[Result]:
    """Every run of `small`: R² .98 at the Gaussian, .99 at α = 1 of InfoNCE, `ends` elsewhere; seeds differ a bit."""
    found = []
    for trial in EXPERIMENT.trials("small", 0):
        alpha, name = trial.at["alpha"], trial.at["objective"]
        value = 0.98 if alpha == 2 else 0.99 if (name, alpha) == ("InfoNCE", 1) else ends
        value += 1e-4 * float(trial.at["seed"])
        estimates = {n: Estimate(value, value, value, 9) for n in ("r2", "r2_unwarped", "r2_grid")}
        estimates["gain"] = Estimate(0.0, 0.0, 0.0, 9)
        record = {"verdicts": as_verdicts(estimates, "")}
        found.append(Result(Trial(trial.at, run, trial.settings), Path(), "finished", record))
    return found


@pytest.mark.parametrize(("ends", "outcome", "count"), [(0.5, "holds in part", 4), (0.981, "does not hold", 0)])
def test_a_curve_peaks_where_it_is_highest_and_falls_on_both_sides(ends: float, outcome: str, count: int):
    finding = EXPERIMENT.conclude(results(ends), "small")
    assert finding.outcome == outcome
    assert f"{count} of 6 curves peak" in finding.sentence
    assert len(finding.tables[0]["rows"]) == len(EXPERIMENT.trials("small", 0))


def test_the_copula_s_predicted_r2_is_the_squared_correlation_with_its_gaussian_scores():
    (figure,) = EXPERIMENT.conclude(results(0.5), "small").figures
    predicted = figure["panels"][1]["series"][-1]
    u = torch.randn(200_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for alpha, expected in zip(SCALES["small"].alphas, predicted["y"], strict=True):
        z = CopulaGeneralisedNormal(dim=1, alpha=alpha).from_gaussian(u)
        drawn = np.corrcoef(u[:, 0], z[:, 0])[0, 1] ** 2
        assert expected == pytest.approx(drawn, abs=0.05 if alpha < 1 else 0.005)
