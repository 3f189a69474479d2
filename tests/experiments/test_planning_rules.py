"""The planning experiments' verdicts follow their rules: results are given, outcomes must come out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jepatlas.core.records import Estimate
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.engine.experiment import as_verdicts
from jepatlas.experiments.planning.planning_cost import PROBLEMS
from jepatlas.experiments.planning.straight_plans import LATENTS

Numbers = dict[str, float | tuple[float, float]]
LIBRARIES = (100, 1000, 10_000, 100_000)


def estimate(given: float | tuple[float, float]) -> Estimate:
    """A number, or one with its upper limit."""
    value, high = given if isinstance(given, tuple) else (given, given)
    return Estimate(value, value, high, 9)


def concluded(name: str, numbers: Callable[[Trial], Numbers], lost: int = 0) -> Finding:
    """The finding of a small study in which every trial's numbers are given; the last ones may not have finished."""
    trials = EXPERIMENTS[name].trials("small", 0)
    results = []
    for number, trial in enumerate(trials):
        verdicts = as_verdicts({key: estimate(value) for key, value in numbers(trial).items()}, "given")
        gone = number >= len(trials) - lost
        results.append(Result(trial, Path(), "failed" if gone else "finished", {} if gone else {"verdicts": verdicts}))
    return EXPERIMENTS[name].conclude(results, "small")


@pytest.mark.parametrize(
    ("kept", "value", "control", "outcome"),
    [
        (1e-12, 1e-12, 0.5, "holds"),
        (1e-12, 1e-12, 1e-3, "holds in part"),  # the control shows nothing
        (2e-6, 1e-12, 0.5, "does not hold"),
        (1e-12, 2e-6, 0.5, "does not hold"),
    ],
)
def test_optimal_planning(kept: float, value: float, control: float, outcome: str):
    def numbers(trial: Trial) -> Numbers:
        odd = trial.at == {"dim": 4, "seed": 2}  # one world is enough
        found: Numbers = {}
        for problem in ("lqr", "goal"):
            for case in ("invariant", "conjugated"):
                found |= {f"{problem}_{case}_actions": kept if odd else 0.0, f"{problem}_{case}_value": value}
            for case in ("unconjugated", "sheared"):
                found |= {f"{problem}_{case}_actions": control if odd else 1.0, f"{problem}_{case}_lost": 0.2}
        return found

    assert concluded("optimal-planning", numbers).outcome == outcome


def _tracking(trial: Trial) -> float:
    """1 − R² of a latent, the larger the shorter it was trained; a little apart for every seed and mixing."""
    apart = 1e-5 * (int(trial.at["seed"]) + 3 * (trial.at["mixing"] == "spiral"))
    if trial.at["latent"] == "observed":
        return 0.9 + apart
    steps, weight = str(trial.at["latent"]).split("-", 1)
    return 30 / int(steps) + (0.003 if weight != "0.01" else 0.0) + apart


@pytest.mark.parametrize(
    ("cost", "outcome"),
    [
        (lambda error: 1 + 2 * error, "holds"),  # the worst of the identified ones, of 1000 steps, has an error of .015
        (lambda error: 1 + 5 * error, "holds in part"),  # and is 7.5% above the optimum
        (lambda error: 1.01, "holds in part"),  # cost does not rise
        (lambda error: 1.2 - error / 10, "does not hold"),
    ],
)
def test_planning_cost(cost: Callable[[float], float], outcome: str):
    def numbers(trial: Trial) -> Numbers:
        error = _tracking(trial) / 2
        return {"r2": 1 - error, **dict.fromkeys(PROBLEMS, cost(error))}

    finding = concluded("planning-cost", numbers, lost=1)
    assert finding.outcome == outcome


def test_one_problem_that_costs_more_is_enough():
    def numbers(trial: Trial) -> Numbers:
        error = _tracking(trial) / 2
        return {"r2": 1 - error, **dict.fromkeys(PROBLEMS, 1 + 2 * error), "regulate": 1 + 10 * error}

    finding = concluded("planning-cost", numbers)
    assert finding.outcome == "holds in part"
    assert [verdict.passed for verdict in finding.verdicts] == [False, True, True, True]


def test_where_no_latent_is_identified_nothing_is_said_of_those():
    finding = concluded("planning-cost", lambda trial: {"r2": 0.5, **dict.fromkeys(PROBLEMS, 1.01)})
    assert finding.outcome == "does not hold" and finding.sentence == "No latent has R² ≥ 0.98."
    assert finding.verdicts[0].passed is False and finding.verdicts[0].n == 0


def test_the_upper_limit_of_a_cost_decides():
    def numbers(trial: Trial) -> Numbers:
        error = _tracking(trial) / 2
        return {"r2": 1 - error, **dict.fromkeys(PROBLEMS, (1 + error, 1.06))}

    finding = concluded("planning-cost", numbers)
    assert finding.outcome == "holds in part" and "to the origin 1.060" in finding.criteria[0].found


@pytest.mark.parametrize(
    ("trained", "miss", "observed", "outcome"),
    [
        (1.05, 0.1, 3.0, "holds"),
        (1.15, 0.1, 3.0, "does not hold"),
        (1.05, 0.3, 3.0, "holds in part"),  # straight, but not there; neighbours end at the goal
        (1.05, 0.1, 1.05, "does not hold"),  # so is what is observed
    ],
)
def test_straight_plans(trained: float, miss: float, observed: float, outcome: str):
    lengths = {"rotated": 1.0, "trained": trained, "observed": observed}

    def numbers(trial: Trial) -> Numbers:
        found: Numbers = {f"{name}_r2": 0.99 for name in LATENTS}
        for name, length in lengths.items():
            found |= {f"{name}_dynamics_detour": length, f"{name}_dynamics_miss": miss if name == "trained" else 0.0}
            for size in LIBRARIES:  # the library makes all of them longer alike
                grain = 1 + 10 / size
                found |= {f"{name}_neighbours_{size}_detour": grain * length, f"{name}_neighbours_{size}_miss": 0.0}
        return found

    finding = concluded("straight-plans", numbers, lost=1)
    assert finding.outcome == outcome
    rows = {row[3]: row[4] for row in finding.tables[0].rows if row[:2] == ["spiral", LATENTS["rotated"]]}
    assert rows["neighbours, 100"].startswith("1.100") and rows["neighbours, 100,000"].startswith("1.000")
