"""Claims on identification whose trials compare with theory: warps, affinities, dynamics, energies, correlations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.rules import as_verdicts
from jepatlas.experiments.identifiability import correlation_ladder, recovered_dynamics
from jepatlas.experiments.identifiability.dirichlet_energy import dirichlet_energies
from jepatlas.experiments.identifiability.predicted_affinity import predicted_affinity
from jepatlas.experiments.identifiability.recovered_warps import predicted_warps
from jepatlas.worlds import (
    AdditiveGeneralisedNormal,
    AnyLaw,
    CopulaGeneralisedNormal,
    LangevinGeneralisedNormal,
    ParabolicShear,
    SinusoidalShear,
    Spiral,
)

Numbers = Callable[[Trial], dict[str, tuple[float, float, float]]]


def concluded(name: str, numbers: Numbers, **more: Any) -> Finding:
    """The finding of a small study with the given values and limits."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        estimates = {key: Estimate(*limits, 9) for key, limits in numbers(trial).items()}
        results.append(Result(trial, Path(), "finished", {"verdicts": as_verdicts(estimates, "")} | more))
    return EXPERIMENTS[name].conclude(results, "small")


def about(value: float, margin: float = 0.01) -> tuple[float, float, float]:
    return value, value - margin, value + margin


@pytest.mark.parametrize(
    ("langevin", "additive", "outcome"),
    [
        (0.98, 0.999, "holds"),  # the law outside the theorem does not decide
        (0.9905, 0.98, "undecided"),
        (0.995, 0.98, "does not hold"),
    ],
)
def test_generalised_normal_is_decided_by_paired_falls_of_langevin_motion(
    langevin: float, additive: float, outcome: str
):
    def numbers(trial: Trial) -> dict[str, tuple[float, float, float]]:
        seed = float(trial.at["seed"])
        noise = 0.001 * np.sin(7 * seed + float(trial.at["alpha"]))
        top = 0.99 + noise if langevin == 0.9905 else 0.99
        value = {"Gaussian": top, "Langevin": langevin}.get(str(trial.at["law"]), additive)
        return {"r2": about(value + 0.01 * seed)}  # shared by all α of a seed

    finding = concluded("generalised-normal", numbers)
    assert finding.outcome == outcome
    assert [criterion.met for criterion in finding.criteria[2:]] == [additive < 0.99] * 2


def leading_odd_polynomial(law: AnyLaw, count: int = 40_000) -> float:
    """Corr(f, z)² of the polynomial z … z⁷ with the largest correlation between siblings."""
    generator = torch.Generator().manual_seed(0)
    anchor = law.states(count, generator).double()
    a, b = (law.transition(anchor, generator)[:, 0].numpy() for _ in range(2))
    first, second = (np.stack([view**k for k in (1, 3, 5, 7)], axis=1) for view in (a, b))
    within = first.T @ first + second.T @ second
    _, vectors = scipy.linalg.eigh(first.T @ second + second.T @ first, within)
    return float(np.corrcoef(first @ vectors[:, -1], a)[0, 1] ** 2)


@pytest.mark.parametrize("alpha", [4.0, 32.0])
@pytest.mark.parametrize(
    ("name", "law"), [("Langevin", LangevinGeneralisedNormal), ("additive", AdditiveGeneralisedNormal)]
)
def test_predicted_affinity_is_that_of_the_slowest_polynomial(name: str, law: type, alpha: float):
    expected = leading_odd_polynomial(law(dim=1, rho=0.95, alpha=alpha))
    assert predicted_affinity(name, alpha, 0.95) == pytest.approx(expected, abs=0.006)


def test_predicted_affinity_of_the_copula_is_the_squared_correlation_with_normal_scores():
    u = torch.randn(200_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for alpha in (1.0, 8.0):
        z = CopulaGeneralisedNormal(dim=1, alpha=alpha).from_gaussian(u)
        drawn = np.corrcoef(u[:, 0], z[:, 0])[0, 1] ** 2
        assert predicted_affinity("copula", alpha, 0.9) == pytest.approx(drawn, abs=0.005)


def test_no_affinity_is_predicted_for_heavy_tails_and_one_for_the_gaussian():
    assert np.isnan([predicted_affinity(law, 1.0, 0.9) for law in ("Langevin", "additive")]).all()
    assert predicted_affinity("additive", 2.0, 0.9) == 1
    assert predicted_affinity("additive", 2.001, 0.9) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("recovered", "agreement", "advantage", "outcome"),
    [
        (0.99, 0.999, 0.02, "holds"),
        (0.99, 0.999, -0.02, "holds in part"),  # the other law's warp is better
        (0.90, 0.9, -0.02, "does not hold"),
        (0.985, 0.985, 0.005, "undecided"),
    ],
)
def test_warp_recovery(recovered: float, agreement: float, advantage: float, outcome: str):
    margin = 0.008
    found = {"r2_unwarped": recovered, "agreement": agreement, "advantage": advantage}
    finding = concluded("warp-recovery", lambda trial: {name: about(one, margin) for name, one in found.items()})
    assert finding.outcome == outcome


def test_predicted_warps_of_two_dynamics_with_one_density_differ():
    z = np.linspace(-1.5, 1.5, 31)
    for alpha in (1.5, 32.0):
        langevin, copula = (warp(z) for warp in predicted_warps(alpha).values())
        assert (np.diff(langevin) > 0).all() and (np.diff(copula) > 0).all()
        assert np.corrcoef(langevin, copula)[0, 1] < 0.998


@pytest.mark.parametrize(
    ("error", "control", "outcome"),
    [
        (0.02, 0.5, "holds"),
        (0.02, 0.04, "undecided"),  # the controls pass, so the errors are no test
        (0.3, 0.5, "holds in part"),  # of one step only
    ],
)
def test_recovered_dynamics(error: float, control: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, tuple[float, float, float]]:
        value = control if trial.at["latents"] in recovered_dynamics.CONTROLS else error
        return {"error_1": about(0.01), "error_10": about(value)}

    assert concluded("recovered-dynamics", numbers).outcome == outcome


def test_dirichlet_energies_have_their_closed_forms():
    """E‖Dh‖² is 2 + 2π² for the spiral, 6 for the parabola, and 2 + 1.125 (1 + e^−4.5) for the sine."""
    z = torch.randn(20_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = {Spiral(): 2 + 2 * np.pi**2, ParabolicShear(): 6, SinusoidalShear(): 2 + 1.125 * (1 + np.exp(-4.5))}
    for mixing, energy in expected.items():
        assert dirichlet_energies(mixing, z, np.eye(2)).mean() == pytest.approx(energy, rel=0.03)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert np.allclose(dirichlet_energies(Spiral(twist=0.0), z[:5], 3 * turn), 18)


@pytest.mark.parametrize(
    ("gap", "least", "outcome"),
    [(0.01, 2.5, "holds"), (0.2, 2.5, "holds in part"), (0.2, 2.0, "holds in part"), (0.01, 2.0, "holds in part")],
)
def test_dirichlet(gap: float, least: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, tuple[float, float, float]]:
        return {"gap_0.999999": about(gap), "whitened": about(2.0 if trial.at["map"] == "identity" else least)}

    finding = concluded("dirichlet", numbers)
    assert finding.outcome == outcome
    assert [criterion.met for criterion in finding.criteria] == [gap < 0.05, True, least > 2.1]


@pytest.mark.parametrize(
    ("gaussian", "control", "outcome"),
    [(0.01, 0.3, "holds"), (0.01, 0.01, "undecided"), (0.3, 0.3, "does not hold"), (0.045, 0.3, "undecided")],
)
def test_mehler_asks_only_degrees_that_are_present(gaussian: float, control: float, outcome: str):
    def numbers(trial: Trial) -> dict[str, tuple[float, float, float]]:
        value = control if trial.at["law"] in correlation_ladder.CONTROLS else gaussian
        absent = {"ladder_2": about(0.9), "ladder_4": about(0.9)}
        return absent | {name: about(value) for name in ("ladder_1", "ladder_3", "loss_decomposition")}

    shares = {"1": 0.8, "2": 0.001, "3": 0.19, "4": 0.0}
    assert concluded("mehler", numbers, shares=shares).outcome == outcome
