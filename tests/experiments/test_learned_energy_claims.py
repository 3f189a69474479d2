"""Claims on learned energies: outcomes from given results, and the measures behind them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.energy.learned_energies import AXIOMS, energy_trial, quasimetric, run
from jepatlas.experiments.energy.one_way_reachability import SYMMETRIC
from jepatlas.experiments.energy.porting_trial import agreement
from jepatlas.experiments.energy.prediction_energy import fit_predictor

Numbers = dict[str, float]
CLEAN = dict.fromkeys(AXIOMS, 0.0)


def verdict_json(name: str, value: float) -> dict[str, Any]:
    """A verdict: axioms pass at 0, as in an audit; other numbers have no threshold."""
    threshold = 0.0 if name.endswith(AXIOMS) else None
    return Verdict.judge(
        name,
        Estimate(value, value, value, 9),
        direction="lower",
        threshold=threshold,
        good="Kept.",
        bad="The energy from state 0 to state 2 is 4, not 1 + 1. More of it.",
    ).to_json()


def concluded(name: str, numbers: Callable[[Trial], Numbers], apart: float = 1e-5) -> Finding:
    """The finding of a small study with the given numbers; nonzero numbers differ slightly between seeds."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        shift = apart * float(trial.at["seed"])
        verdicts = [verdict_json(key, value + (shift if value else 0.0)) for key, value in numbers(trial).items()]
        curve = {"x": [1.0, 2.0], "y": [1.0, 2.0], "low": [1.0, 2.0], "high": [1.0, 2.0]}
        results.append(Result(trial, Path(), "finished", {"verdicts": verdicts, "curve": curve}))
    return EXPERIMENTS[name].conclude(results, "small")


@pytest.mark.parametrize(
    ("one_way", "overall", "learned", "outcome"),
    [
        (0.5, 0.7, 0.99, "holds"),
        (0.5, 0.7, 0.90, "holds in part"),  # symmetric scores obey their ceiling, but no head is accurate enough
        (0.5 + 1e-6, 0.7, 0.99, "does not hold"),  # a symmetric score distinguishes the directions
        (0.5, 0.76, 0.99, "does not hold"),  # a symmetric score exceeds its ceiling
    ],
)
def test_one_way_reachability(one_way: float, overall: float, learned: float, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        symmetric = trial.at["head"] in SYMMETRIC
        return {
            "one_way_auc": one_way if symmetric else learned,
            "reachability_auc": overall if symmetric else learned,
            "symmetric_ceiling": 0.75,
            "spearman": 0.99,
        }

    assert concluded("one-way-reachability", numbers, apart=0.0).outcome == outcome


GOOD = {"spearman": 0.995, "median_ratio": 1.02, "ratio_5": 0.95, "ratio_95": 1.1, "reachability_auc": 0.999}


@pytest.mark.parametrize(
    ("off", "where", "outcome"),
    [
        ({}, "", "holds"),
        ({"spearman": 0.98}, "lake", "holds in part"),
        ({"median_ratio": 0.94}, "grid", "holds in part"),
        ({"ratio_95": 1.16}, "cliff", "holds in part"),
        ({"reachability_auc": 0.9}, "", "does not hold"),
    ],
)
def test_energy_calibration(off: Numbers, where: str, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        worse = off if trial.at["world"] == where or not where else {}
        return GOOD | {"uncalibrated_ratio": 1.2} | worse

    finding = concluded("energy-calibration", numbers)
    assert finding.outcome == outcome
    assert finding.tables[1].rows[0][-1] == "12 of 12"


def test_calibration_needs_no_auc_if_every_pair_is_reachable():
    finding = concluded("energy-calibration", lambda trial: {k: v for k, v in GOOD.items() if k != "reachability_auc"})
    assert finding.outcome == "holds"


@pytest.mark.parametrize(
    ("enough", "outcome", "least"),
    [
        (0.7, "holds", "75%"),
        (0.1, "holds in part", "50%"),  # coverage makes no difference
        (1.1, "does not hold", "no coverage"),
    ],
)
def test_energy_coverage(enough: float, outcome: str, least: str):
    def numbers(trial: Trial) -> Numbers:
        error = 0.04 if float(trial.at["coverage"]) >= enough else 0.4
        return {"spearman": 0.99, "reachability_auc": 0.99, "calibration_error": error}

    finding = concluded("energy-coverage", numbers)
    assert finding.outcome == outcome and least in finding.sentence


@pytest.mark.parametrize(("gap", "outcome"), [(0.0, "holds"), (0.1, "does not hold")])
def test_energy_heads(gap: float, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        own = {"midpoints": gap} if trial.at["head"] == "mrn" else {}
        error = 0.03 if trial.at["head"] == "pqe" else 0.05
        return CLEAN | own | {"calibration_error": error, "reachability_auc": 0.9}

    finding = concluded("energy-heads", numbers)
    assert finding.outcome == outcome
    assert "pqe has the smallest error, 0.030" in finding.sentence


@pytest.mark.parametrize(
    ("identity", "triangle", "learned", "outcome"),
    [
        (0.3, 0.5, 0.0, "holds"),
        (0.0, 0.5, 0.0, "holds in part"),  # the prediction error of staying is 0
        (0.0, 0.5, 0.1, "holds in part"),
        (0.0, 0.0, 0.1, "does not hold"),
    ],
)
def test_prediction_energy(identity: float, triangle: float, learned: float, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        caught = CLEAN | {"identity": identity, "triangle": triangle}
        of = {"prediction": caught, "l2": CLEAN, "learned": CLEAN | {"triangle": learned}}
        return {f"{name}_{axiom}": value for name, axioms in of.items() for axiom, value in axioms.items()}

    finding = concluded("prediction-energy", numbers)
    assert finding.outcome == outcome
    worst = "The energy from state 0 to state 2 is 4, not 1 + 1"
    assert all((row[2] == worst) is bool(triangle) for row in finding.tables[1].rows)


@pytest.mark.parametrize(
    ("gap", "ported", "shuffled", "outcome"),
    [
        (0.0, 0.98, 0.5, "holds"),
        (0.0, 0.90, 0.5, "holds in part"),  # porting loses accuracy
        (0.0, 0.98, 0.98, "holds in part"),  # a shuffled map is as accurate
        (0.1, 0.98, 0.5, "does not hold"),
    ],
)
def test_ported_energy(gap: float, ported: float, shuffled: float, outcome: str):
    numbers = {}
    for arm in ("8", "12", "8-jitter", "12-jitter"):
        numbers |= {f"{arm}_ported_{axiom}": 0.0 for axiom in AXIOMS} | {f"{arm}_ported_triangle": gap}
        numbers |= {f"{arm}_own_spearman": 0.99, f"{arm}_ported_spearman": 0.98, f"{arm}_shuffled_spearman": shuffled}
    numbers["12_ported_spearman"] = ported  # one world is enough to miss the criterion
    assert concluded("ported-energy", lambda trial: numbers).outcome == outcome


def test_experiments_share_the_trials_of_the_one_way_grid():
    """The same run has the same name in every experiment, so it is executed once."""
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


def test_uncalibrated_ratio_is_the_ratio_divided_by_the_step_scale(half_covered: Result):
    """Calibration multiplies all energies by one factor; steps cost 1."""
    before = half_covered.value("median_ratio") / half_covered.value("step_scale")
    assert half_covered.value("uncalibrated_ratio") == pytest.approx(before)
    assert quasimetric(half_covered)


def test_energies_are_also_compared_with_distances_over_observed_steps(half_covered: Result):
    """With half of the steps, shortest paths are longer, so the ratio is smaller."""
    assert half_covered.value("seen_median_ratio") < half_covered.value("median_ratio")
    assert np.isfinite(half_covered.value("seen_spearman"))
    assert 0.5 < half_covered.value("symmetric_ceiling") < 1


def test_a_finished_trial_is_evaluated_again_without_training(half_covered: Result):
    record = run(half_covered.trial.settings, str(half_covered.folder))
    assert record["step"] == half_covered.record["step"]
    again = Result(half_covered.trial, half_covered.folder, record["status"], record)
    assert again.value("spearman") == half_covered.value("spearman")


def test_agreement_matches_a_calculation_by_hand():
    """Three reachable pairs, ranked 1 2 3 by truth and 1 3 2 by energy, and three unreachable pairs."""
    inf = np.inf
    truth = np.array([[0, 1, 2], [inf, 0, 3], [inf, inf, 0]])
    energies = np.array([[0.0, 1, 3], [9, 0, 2], [9, 2.5, 0]])
    order, auc = agreement(energies, truth)
    assert order == pytest.approx(0.5)
    assert auc == pytest.approx(8 / 9), "2.5 is below the 3 of a reachable pair"


def test_the_predictor_learns_the_conditional_mean():
    rng = np.random.default_rng(0)
    h = rng.uniform(-1, 1, (4000, 2))
    follows = np.column_stack([h[:, 0] ** 2, -h[:, 1]])
    predictor = fit_predictor(h, follows + 0.1 * rng.standard_normal(h.shape), 400, seed=0)
    predicted = predictor(torch.as_tensor(h, dtype=torch.float32)).numpy()
    assert np.abs(predicted - follows).mean() < 0.05
    assert not any(parameter.requires_grad for parameter in predictor.parameters())


def test_settings_of_a_ported_energy_contain_no_file_path():
    """Settings are the same on every machine; the trial writes the file into its own folder."""
    (trial,) = EXPERIMENTS["ported-energy"].trials("tiny", 0)
    assert trial.settings["energy"]["source"] == {"kind": "file", "path": "", "sha256": None}
    assert not Path(trial.job.name).is_absolute()


def test_a_trial_of_least_action_on_a_table_is_judged(tmp_path: Path):
    (trial,) = EXPERIMENTS["least-action-tables"].trials("tiny", 0)
    result = Result(trial, tmp_path, "finished", trial.run(trial.settings, str(tmp_path)))
    assert result.value("broken") == 0
    assert 0 <= result.value("stated") <= 1 and 0 <= result.value("remained") <= 1
    assert result.value("ratio_5") >= 1 - 1e-6, "ways of observed steps are never cheaper than the cheapest"
    assert EXPERIMENTS["least-action-tables"].conclude([result], "tiny").outcome in ("holds", "holds in part")
