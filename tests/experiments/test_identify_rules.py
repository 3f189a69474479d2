"""The verdicts of the identification experiments follow their rules: results are given, outcomes must come out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.identifiability.lambda_rho import PUBLISHED, RHOS, TOO_SMALL

Numbers = Callable[[Trial], dict[str, float]]


def concluded(name: str, numbers: Numbers, wide: float = 0.0, **more: Any) -> Finding:
    """The finding of a small study in which every trial's numbers are given, each with the same interval."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        estimates = {key: Estimate(v, v - wide, v + wide, 9) for key, v in numbers(trial).items()}
        results.append(Result(trial, Path(), "finished", {"verdicts": as_verdicts(estimates, "")} | more))
    finding = EXPERIMENTS[name].conclude(results, "small")
    assert 0 < len(finding.short) <= 66  # a line of the list
    return finding


def grid(small: float, end: float | None) -> Numbers:
    """The published R² where λ is large enough; at λ ≤ 1e-2 and the largest ρ it may `end` otherwise."""

    def numbers(trial: Trial) -> dict[str, float]:
        weight, rho = float(trial.at["weight"]), float(trial.at["rho"])
        if weight == TOO_SMALL:
            return {"r2": small}
        if end is not None and weight <= 1e-2 and rho == 0.99:
            return {"r2": end}
        return {"r2": PUBLISHED[weight][RHOS.index(rho)]}

    return numbers


@pytest.mark.parametrize(
    ("small", "end", "outcome"),
    [(0.05, None, "holds"), (0.05, 0.951, "holds in part"), (0.99, None, "holds in part")],
)
def test_lambda_rho(small: float, end: float | None, outcome: str):
    """It does not hold as a whole where recovery falls at the largest ρ, nor where it survives a small λ."""
    finding = concluded("lambda-rho", grid(small, end))
    assert finding.outcome == outcome
    assert [v.passed for v in finding.verdicts if v.name.startswith("growth")] == [end is None] * 2
    assert f"at λ = 0.001, where the mean is highest at ρ = {0.99 if end is None else 0.95}" in finding.sentence


def test_no_run_of_the_grid_is_stopped_for_collapse():
    assert {t.settings["training"]["collapse"] for t in EXPERIMENTS["lambda-rho"].trials("small", 0)} == {0.0}


def errors(excess: float, whitened: float, by: str) -> Numbers:
    """Errors that grow from run to run, and one run, the eighth, whose error is above its bound."""

    def numbers(trial: Trial) -> dict[str, float]:
        number = 1 + float(trial.at["seed"]) + 10 * float(trial.at["weight"]) + float(trial.at.get("rho", 0))
        chosen = trial.at.get("mixing") == "parabolic-shear" and trial.at["seed"] == 1
        found = {"procrustes": number, "bound": 3 * number}
        found |= dict.fromkeys(("delta", "epsilon"), 7.3 * number % 1) | {by: number}
        found |= {"procrustes_whitened": 1.0, "bound_whitened": 3.0, "gap": 1.0, "r2": 0.9}
        if chosen:
            found |= {"bound": number - excess, "bound_whitened": 1.0 - whitened}
        ratios = {f"error_to_bound{f}": found[f"procrustes{f}"] / found[f"bound{f}"] for f in ("", "_whitened")}
        return found | ratios

    return numbers


@pytest.mark.parametrize(
    ("excess", "whitened", "by", "outcome"),
    [
        (-1.0, -1.0, "delta", "holds"),
        (-1.0, -1.0, "epsilon", "holds in part"),  # it is not δ that decides
        (0.02, -1.0, "delta", "holds"),  # 2.8 standard errors in one of 126 comparisons
        (0.10, -1.0, "delta", "does not hold"),
        (-1.0, 0.10, "delta", "does not hold"),  # only the whitened form is broken
    ],
)
def test_bound(excess: float, whitened: float, by: str, outcome: str):
    finding = concluded("bound", errors(excess, whitened, by), wide=0.01)
    assert finding.outcome == outcome
    assert "63 of 63 runs" in finding.sentence
    assert f"in {int(excess > 0)} as trained and {int(whitened > 0)} whitened" in finding.sentence
    beyond, chance = int(excess > 0.02) + int(whitened > 0.02), int(outcome == "does not hold")
    assert finding.short.startswith(f"{beyond} beyond both intervals, {chance} beyond chance;")


def course(linear: float, beyond: float, gap: float) -> list[dict[str, Any]]:
    """Untrained, with nearly all beyond degree 4; and the end."""
    first = {
        "step": 0,
        "shares": {"1": 0.1, "2": 0.0, "3": 0.0, "4": 0.0},
        "beyond": 0.9,
        "loss": 1.0,
        "band": [0.2, 1.8],
        "gap": [0.0, 0.0, 0.0],
    }
    last = {
        "step": 9,
        "shares": {"1": linear, "2": 0.0, "3": 0.0, "4": 0.0},
        "beyond": beyond,
        "loss": 0.2,
        "band": [0.2, 0.2 + 1.6 * beyond],
        "gap": [0.0, 0.0, gap],
    }
    return [first, last]


@pytest.mark.parametrize(
    ("linear", "beyond", "gap", "outcome"),
    [
        (0.99, 0.005, 0.01, "holds"),
        (0.99, 0.005, 0.2, "holds in part"),  # the loss is not what the degrees make it
        (0.99, 0.2, 0.01, "holds in part"),  # they do not say what it is
        (0.50, 0.005, 0.01, "holds in part"),
        (0.50, 0.2, 0.01, "does not hold"),
    ],
)
def test_hermite(linear: float, beyond: float, gap: float, outcome: str):
    finding = concluded("hermite", lambda trial: {}, course=course(linear, beyond, gap))
    assert finding.outcome == outcome
    assert f"in {6 if beyond < 0.1 else 0} of 12 moments" in finding.sentence, "wide bands test nothing"


@pytest.mark.parametrize(("last", "enough"), [(0.97, "> 100,000"), (0.99, "100,000")])
def test_how_many_pairs_is_measured_and_asked_of_every_seed(last: float, enough: str):
    def numbers(trial: Trial) -> dict[str, float]:
        many = trial.at["pairs"] == 100_000
        worst = trial.at["seed"] == 2
        return {"r2": last if many and worst else 0.97 if worst else 0.999}

    finding = concluded("sample-complexity", numbers)
    assert finding.outcome == "measured"
    assert f"LeJEPA {enough}" in finding.sentence


@pytest.mark.parametrize(
    ("r2", "alone", "whitened", "outcome"),
    [
        (0.99, 0.01, 0.5, "holds"),
        (0.99, 0.01, 1.5, "holds in part"),  # above the bound after whitening
        (0.99, 0.95, 0.5, "holds in part"),  # SIGReg alone is enough
        (0.90, 0.01, 0.5, "does not hold"),
    ],
)
def test_identify_2d(r2: float, alone: float, whitened: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, float]:
        score = alone if trial.at["weight"] == 1.0 else r2
        return {
            "r2": score,
            "error_to_bound": 0.5,
            "error_to_bound_whitened": whitened,
            "procrustes": 0.125,
            "procrustes_whitened": 0.25,
        }

    finding = concluded("identify-2d", numbers)
    (table,) = finding.tables
    row = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert finding.outcome == outcome
    assert row["error"].startswith("0.125") and row["error, whitened"].startswith("0.250")


def test_every_run_is_a_point_at_the_time_it_took():
    numbers: Numbers = lambda trial: {"r2": 0.9, "cpu_seconds": 2.0 if trial.at["method"] == "spectral" else 40.0}  # noqa: E731
    finding = concluded("spectral-solver", numbers)
    (figure,) = finding.figures
    assert finding.outcome == "holds" and len(figure["panels"]) == 4
    assert {series["name"]: np.unique(series["x"]).tolist() for series in figure["panels"][0]["series"]} == {
        "LeJEPA": [40.0],
        "spectral": [2.0],
    }
