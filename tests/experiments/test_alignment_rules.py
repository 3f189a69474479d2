"""The alignment experiments' verdicts follow their rules: results are given, outcomes must come out."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial, reproduce
from jepatlas.experiments.alignment.pair_budget import METHODS, budgets
from jepatlas.experiments.alignment.pair_noise import SHARES
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval


def concluded(name: str, numbers: Callable[[Trial], dict[str, float]], apart: float = 1e-4, **more: Any) -> Finding:
    """The finding of a small study in which every trial's numbers are given; seeds differ a bit."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        bit = apart * float(trial.at["seed"])
        estimates = {key: Estimate(v + bit, v + bit, v + bit, 9) for key, v in numbers(trial).items()}
        results.append(Result(trial, Path(), "finished", {"verdicts": as_verdicts(estimates, "")} | more))
    finding = EXPERIMENTS[name].conclude(results, "small")
    assert 0 < len(finding.short) <= 66  # a line of the list
    return finding


@pytest.mark.parametrize(
    ("lejepa", "free", "r2", "outcome"),
    [
        (0.05, 2.0, 0.99, "holds"),
        (0.05, 0.05, 0.99, "holds in part"),  # all maps are orthogonal: it is not the objective
        (0.05, 2.0, 0.5, "holds in part"),  # no linear map to speak of
        (0.5, 2.0, 0.99, "holds in part"),
        (0.5, 0.05, 0.99, "does not hold"),
    ],
)
def test_orthogonal_maps(lejepa: float, free: float, r2: float, outcome: str):
    off = {"LeJEPA": lejepa, "whitening": free, "VICReg": 9.0, "InfoNCE": 9.0}
    finding = concluded(
        "orthogonal-maps", lambda trial: {"orthogonality_raw": off[str(trial.at["objective"])], "r2": r2, "p": 0.01}
    )
    assert finding.outcome == outcome


def budget(trial: Trial, first: str, kappa: float) -> dict[str, float]:
    """Every method is at its best with 500 pairs; `first` with twice the dimensions, where charts are identified."""
    dim, identified, found = int(trial.at["dim"]), trial.at["charts"] != "general", dict[str, float]()
    for n in budgets(dim, trial.settings["pairs"]):
        for name in METHODS:
            good = n >= (2 * dim if name == first and identified else 500)
            found |= {f"r2_{name}_{n}": 0.95 if good else 0.1, f"kappa_{name}_{n}": 1.0 if good else kappa}
    return found


@pytest.mark.parametrize(
    ("first", "kappa", "outcome"),
    [("Procrustes", 1e3, "holds"), ("Procrustes", 2.0, "holds in part"), ("ridge", 2.0, "does not hold")],
)
def test_pair_budget(first: str, kappa: float, outcome: str):
    finding = concluded("pair-budget", lambda trial: budget(trial, first, kappa))
    assert finding.outcome == outcome
    assert "least squares 500, ridge 500, Procrustes 128" in finding.sentence or first != "Procrustes"


@pytest.mark.parametrize(
    ("lost", "growth", "outcome"),
    [(0.2, 80.0, "holds"), (0.2, 1.1, "holds in part"), (-0.1, 1.1, "does not hold")],
)
def test_pair_noise(lost: float, growth: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, float]:
        found = {
            f"{what}_{name}_{share:g}": 0.5
            for what in ("r2", "kappa")
            for name in ("plain", "robust")
            for share in SHARES
        }
        return found | {"lost_plain_0.3": lost, "lost_robust_0.3": 0.001, "growth_0.3": growth}

    finding = concluded("pair-noise", numbers)
    assert finding.outcome == outcome
    assert all(verdict.passed for verdict in finding.verdicts), "the robust fit is judged by itself"


def test_a_factor_is_averaged_as_one():
    """By the definition: Student's interval of the logarithms, of 1, 10 and 100 about 10."""
    trials = EXPERIMENTS["pair-noise"].trials("small", 0)[:3]
    runs = [
        Result(trial, Path(), "finished", {"verdicts": as_verdicts({"growth": Estimate(v, v, v, 9)}, "")})
        for trial, v in zip(trials, (1.0, 10.0, 100.0), strict=True)
    ]
    found, reach = geometric_mean_and_interval(runs, "growth"), stats.t.ppf(0.975, 2) / np.sqrt(3)
    assert found.value == pytest.approx(10) and found.n == 3
    assert (found.low, found.high) == (pytest.approx(10 ** (1 - reach)), pytest.approx(10 ** (1 + reach)))
    one = geometric_mean_and_interval(runs[:1], "growth")
    assert (one.value, one.low, one.high) == (1.0, 0.0, np.inf)


@pytest.mark.parametrize(
    ("in_sample", "held_out", "early", "outcome"),
    [
        (0.77, -1.9, 4, "holds"),
        (0.77, -1.9, 30, "holds in part"),  # p-values far too small
        (0.10, 0.1, 30, "does not hold"),
    ],
)
def test_alignment_nulls(in_sample: float, held_out: float, early: int, outcome: str):
    names = ("r2_in_sample", "cka", "r2", "cka_debiased", "dsc", "nos_10")
    values = {"r2_in_sample": in_sample, "cka": 0.43, "r2": held_out, "cka_debiased": 0.0, "dsc": 0.0, "nos_10": 0.9}
    values |= {f"related{p}_{name}": 0.1 for name in names for p in ("", "_p")} | {"r2_ridge": -0.01}
    p_values = {name: [0.05] * early + [0.6] * (40 - early) for name in names}
    assert concluded("alignment-nulls", lambda trial: values, p=p_values).outcome == outcome


@pytest.mark.parametrize(
    ("driving", "eth80", "outcome"),
    [(0.95, 0.95, "does not hold"), (0.95, 0.5, "holds in part"), (0.5, 0.5, "undecided")],
)
def test_image_controls(driving: float, eth80: float, outcome: str):
    """One control that reaches the published figure is enough; others may be poor."""

    def numbers(trial: Trial) -> dict[str, float]:
        best = trial.at["control"] == "untrained" and trial.at["width"] == 64
        r2 = {"driving": driving, "eth80": eth80}[str(trial.at["scene"])] if best else 0.2
        return {"r2": r2, "r2_raw": r2, "dsc": 0.5, "nos_10": 0.5} | {f"p_{n}": 0.05 for n in ("r2", "dsc")}

    assert concluded("image-controls", numbers).outcome == outcome


@pytest.mark.parametrize(
    ("untrained", "untrained_raw", "said"),
    [
        (
            0.5,
            0.9,
            "beats PCA (R² 0.500 against 0.400), with latents as they are an untrained encoder beats PCA (R² 0.9",
        ),
        (0.3, 0.3, "nothing beats PCA (R² 0.300 against 0.400), with latents as they are nothing beats PCA (R² 0.300"),
        (0.5, 0.3, "as they are nothing beats PCA (R² 0.300 against 0.800): which is better depends on standardising."),
        (0.4, 0.3, "With standardised latents an untrained encoder and PCA are too close to tell (R² 0.400 against"),
    ],
)
def test_image_controls_say_whether_anything_beats_pca(untrained: float, untrained_raw: float, said: str):
    def numbers(trial: Trial) -> dict[str, float]:
        best = float(trial.at["width"] == 64)  # other widths are poorer
        both = (untrained, untrained_raw) if trial.at["control"] == "untrained" else (0.4, 0.8)
        return {"r2": both[0] * best, "r2_raw": both[1] * best, "dsc": 0.5, "nos_10": 0.5}

    sentence = concluded("image-controls", numbers).sentence
    assert sentence.count(said) == 2, "for both scenes"
    assert sentence.count("depends on standardising") == (2 if "depends" in said or "too close" in said else 0)


def test_where_there_are_no_images_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("JEPATLAS_DATA", raising=False)
    record = reproduce(EXPERIMENTS["image-controls"], "tiny", tmp_path, lambda: ThreadPoolExecutor(1))
    assert record.about["outcome"] == "undecided" and record.about["failed"] == record.about["runs"]
    assert "JEPATLAS_DATA" in record.summary


def changes(ratio: float, zero: float) -> list[dict[str, float]]:
    return [
        {"condition": k, "low": 1 / k, "high": k, "jepa": ratio, "zero": zero, "lejepa": k, "whitening": 1.0}
        for k in (1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
    ]


@pytest.mark.parametrize(
    ("ratio", "zero", "outcome"),
    [(1.0, 1e-15, "holds"), (1.5, 1e-15, "holds in part"), (1.5, 1e-3, "does not hold")],
)
def test_gl_symmetry(ratio: float, zero: float, outcome: str):
    assert concluded("gl-symmetry", lambda trial: {}, changes=changes(ratio, zero)).outcome == outcome


def linear_numbers(trial: Trial, slope: float, off: float, bound: float) -> dict[str, float]:
    s, found = trial.settings, {f"bound_{k:g}": bound for k in trial.settings["conditions"]}
    for where in ("target", "both"):
        for k in s["conditions"]:
            for noise in s["noises"]:
                for n in s["pairs"]:
                    key = f"{where}_{k:g}_{noise:g}_{n}"
                    error = 100 * float(n) ** slope if noise else 0.0
                    found |= {f"error_{key}": error, f"r2_{key}": 1 / (1 + noise**2) + off}
                    found[f"kappa_{key}"] = 0.95 + noise * 300 / n
    return found


@pytest.mark.parametrize(
    ("slope", "off", "bound", "outcome"),
    [(-0.5, 0.0, 0.9, "holds"), (-0.1, 0.0, 0.9, "holds in part"), (-0.1, 0.1, 1.5, "does not hold")],
)
def test_linear_state_model(slope: float, off: float, bound: float, outcome: str):
    finding = concluded("linear-state-model", lambda trial: linear_numbers(trial, slope, off, bound), apart=0.0)
    assert finding.outcome == outcome
    assert f"κ(A₂A₁⁻¹) is at most {bound:.2f} times its bound" in finding.sentence
    fitted = "κ of the fitted W is at most 0.95 times that without noise; with σ = 1 in h₂ it is up to 0.96 times with "
    assert f"{fitted}30,000 pairs and 1.95 times with 300." in finding.sentence
    assert "κ(W) ≤ 0.95 (noisy: 1.95) × bound" in finding.short
