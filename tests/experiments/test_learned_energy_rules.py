"""The energy experiments' verdicts follow their rules: results are given, outcomes must come out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.energy.learned_energies import AXIOMS
from jepatlas.experiments.energy.one_way_reachability import SYMMETRIC

Numbers = dict[str, float]
CLEAN = dict.fromkeys(AXIOMS, 0.0)


def judged(name: str, value: float) -> dict[str, Any]:
    """Axioms are kept where their number is 0, as the audit has it; other numbers only inform."""
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
    """The finding of a small study in which every trial's numbers are given; seeds differ a bit, but for axioms."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        bit = apart * float(trial.at["seed"])
        verdicts = [judged(key, value + (bit if value else 0.0)) for key, value in numbers(trial).items()]
        curve = {"x": [1.0, 2.0], "y": [1.0, 2.0], "low": [1.0, 2.0], "high": [1.0, 2.0]}
        results.append(Result(trial, Path(), "finished", {"verdicts": verdicts, "curve": curve}))
    return EXPERIMENTS[name].conclude(results, "small")


@pytest.mark.parametrize(
    ("blind", "above", "knows", "outcome"),
    [
        (0.5, 0.7, 0.99, "holds"),
        (0.5, 0.7, 0.90, "holds in part"),  # the proposition, and no head that does better
        (0.5 + 1e-6, 0.7, 0.99, "does not hold"),  # a symmetric score that tells the directions apart, however little
        (0.5, 0.76, 0.99, "does not hold"),  # or that is above its ceiling
    ],
)
def test_one_way_reachability(blind: float, above: float, knows: float, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        symmetric = trial.at["head"] in SYMMETRIC
        return {
            "one_way_auc": blind if symmetric else knows,
            "reachability_auc": above if symmetric else knows,
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


def test_where_everything_is_in_reach_no_auc_is_asked_for():
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
        (0.0, 0.5, 0.0, "holds in part"),  # staying is free after all
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
        (0.0, 0.90, 0.5, "holds in part"),  # accuracy is lost
        (0.0, 0.98, 0.98, "holds in part"),  # any map would do, so nothing is shown
        (0.1, 0.98, 0.5, "does not hold"),
    ],
)
def test_ported_energy(gap: float, ported: float, shuffled: float, outcome: str):
    numbers = {}
    for arm in ("8", "12", "8-jitter", "12-jitter"):
        numbers |= {f"{arm}_ported_{axiom}": 0.0 for axiom in AXIOMS} | {f"{arm}_ported_triangle": gap}
        numbers |= {f"{arm}_own_spearman": 0.99, f"{arm}_ported_spearman": 0.98, f"{arm}_shuffled_spearman": shuffled}
    numbers["12_ported_spearman"] = ported  # the finest grid decides, as any would
    assert concluded("ported-energy", lambda trial: numbers).outcome == outcome
