"""The energy experiments' verdicts follow their rules: results are given, outcomes must come out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments import EXPERIMENTS, Finding, Result, Trial
from jepatlas.experiments.energy.directed_effort import FAMILIES
from jepatlas.experiments.energy.intrinsic_energy import AXIOMS, BROKEN, WORLDS
from jepatlas.experiments.energy.registration_energies import EFFORTS, SEGMENTS
from jepatlas.experiments.engine.experiment import as_verdicts


def concluded(name: str, record: Callable[[Trial], dict[str, Any] | None]) -> Finding:
    """The finding of a small study in which every trial's record is given; None is a trial that crashed."""
    results = []
    for trial in EXPERIMENTS[name].trials("small", 0):
        found = record(trial)
        crashed = {"error": "it crashed"}
        results.append(Result(trial, Path(), "crashed" if found is None else "finished", found or crashed))
    return EXPERIMENTS[name].conclude(results, "small")


def told(values: dict[str, float], apart: float = 0.0) -> dict[str, Any]:
    return {"verdicts": as_verdicts({k: Estimate(v + apart, v + apart, v + apart, 9) for k, v in values.items()}, "")}


def audited(broken: set[str], slack: float = 0.0) -> dict[str, Any]:
    """What an audit says where these axioms are broken."""
    exactly = {
        name: Estimate(float(name in broken), float(name in broken), float(name in broken), 9) for name in AXIOMS
    }
    judged = [
        Verdict.judge(name, estimate, direction="lower", threshold=0.5, good="").to_json()
        for name, estimate in exactly.items()
    ]
    facts = told({"states": 9.0, "slack": slack, "allowed": 1e-12, "unreachable": 0.1, "floor": 1.0, "asymmetry": 0.2})
    return {"verdicts": [*judged, *facts["verdicts"]]}


@pytest.mark.parametrize(
    ("worlds", "controls", "outcome"),
    [
        ({}, BROKEN, "holds"),
        ({"rules": {"triangle"}}, BROKEN, "holds in part"),
        ({"sizes": {"goal_set"}}, BROKEN, "holds in part"),
        ({name: {"identity"} for name in WORLDS}, BROKEN, "does not hold"),
        ({}, BROKEN | {"squared-l2": set()}, "undecided"),  # an audit that sees nothing says nothing
        ({}, BROKEN | {"free-downhill": {"triangle"}}, "undecided"),  # caught for what it does not do
    ],
)
def test_intrinsic_energy(worlds: dict[str, set[str]], controls: dict[str, set[str]], outcome: str):
    def record(trial: Trial) -> dict[str, Any]:
        name = str(trial.at["world"])
        return audited((worlds | controls).get(name, set()), slack=0.02 if name == "landmarks" else 0.0)

    finding = concluded("intrinsic-energy", record)
    assert finding.outcome == outcome
    assert all(name in finding.criteria[0].name for name in worlds)


def test_a_world_that_came_to_no_audit_is_no_quasimetric():
    def record(trial: Trial) -> dict[str, Any] | None:
        name = str(trial.at["world"])
        return None if name == "rules" and trial.at["seed"] == 1 else audited(BROKEN.get(name, set()))

    finding = concluded("intrinsic-energy", record)
    assert finding.outcome == "holds in part" and "broken: rules" in finding.criteria[0].name
    assert any("not audited" in row for row in finding.tables[0].rows)


@pytest.mark.parametrize(
    ("twin", "weak", "strong", "outcome"),
    [
        (0.0, 0.02, 0.5, "holds"),
        (0.01, 0.02, 0.5, "holds in part"),  # the doors' twin is not symmetric
        (0.0, 0.0, 0.5, "holds in part"),
        (0.0, 0.02, 0.04, "holds in part"),  # not clear at the largest strength
    ],
)
def test_directed_effort(twin: float, weak: float, strong: float, outcome: str):
    finding = concluded("directed-effort", lambda trial: _directed(trial, "doors", twin, weak, strong))
    assert finding.outcome == outcome
    everywhere = concluded(
        "directed-effort", lambda trial: _directed(trial, str(trial.at["family"]), twin, weak, strong)
    )
    assert everywhere.outcome == ("holds" if outcome == "holds" else "does not hold")


def _directed(trial: Trial, changed: str, twin: float, weak: float, strong: float) -> dict[str, Any]:
    first, *middle, last = FAMILIES[str(trial.at["family"])].strengths
    index = {first: 0.0, last: 0.5} | dict.fromkeys(middle, 0.2)
    if trial.at["family"] == changed:
        index = {first: twin, last: strong} | dict.fromkeys(middle, weak)
    values = {f"asymmetry_{strength:g}": value for strength, value in index.items()}
    other = {f"{key}_{strength:g}": 0.0 for key in ("differing", "one_way", "error") for strength in index}
    return told(values | other)


def test_an_index_within_its_own_error_is_no_asymmetry():
    def record(trial: Trial) -> dict[str, Any]:
        found = _directed(trial, "", 0.0, 0.0, 0.0)
        if trial.at["family"] == "vortex-current":
            found["verdicts"] += told({"error_0.4": 0.3})["verdicts"]
            found["verdicts"] = [v for v in found["verdicts"] if v["name"] != "error_0.4" or v["value"] > 0]
        return found

    assert concluded("directed-effort", record).outcome == "holds in part"


@pytest.mark.parametrize(
    ("direction", "auc", "symmetric", "outcome"),
    [
        (0.99, 0.95, 0.7, "holds"),
        (0.90, 0.95, 0.7, "holds in part"),
        (0.99, 0.70, 0.7, "holds in part"),
        (0.90, 0.60, 0.7, "does not hold"),
    ],
)
def test_order_embedding(direction: float, auc: float, symmetric: float, outcome: str):
    def record(trial: Trial) -> dict[str, Any]:
        ours = trial.at["head"] != "l2"
        values = {"auc": auc if ours else symmetric, "direction": direction if ours else 0.5, "ratio": 1.0}
        return told(values | {"auc_unrelated": 0.9, "implied": 0.1}, apart=1e-4 * float(trial.at["seed"]))

    assert concluded("order-embedding", record).outcome == outcome


def test_a_lost_run_does_not_know_the_direction():
    def record(trial: Trial) -> dict[str, Any] | None:
        lost = trial.at["head"] == "iqe" and trial.at["seed"] == 2
        ours = trial.at["head"] != "l2"
        return None if lost else told({"auc": 0.9 if ours else 0.6, "direction": 0.99 if ours else 0.5})

    assert concluded("order-embedding", record).outcome == "holds in part"


def registered(error: float = 0.032, order: float = 2.0, **changes: float) -> dict[str, Any]:
    values = {f"error_{s}": error * s**-order for s in SEGMENTS} | {f"asymmetry_path_{s}": 0.0 for s in SEGMENTS}
    values |= {f"{key}_{name}": 0.0 for key in ("asymmetry", "triangle") for name in (*EFFORTS, "interval", "strain")}
    values |= {f"slack_{name}": 1e-3 for name in EFFORTS} | {"asymmetry_uneven": 0.2}
    return told(values | changes) | {"there_and_back": {name: [[1.0, 1.1]] for name in EFFORTS}}


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        (registered(), "holds"),
        (registered(error=2.0), "holds in part"),
        (registered(order=1.0, error=0.001), "holds in part"),
        (registered(asymmetry_interval=1e-3), "holds in part"),
        (registered(asymmetry_even=0.1), "holds in part"),
        (registered(asymmetry_uneven=0.009), "holds in part"),
        (registered(triangle_plain=0.01), "holds in part"),
        (
            registered(error=2.0, asymmetry_interval=1.0, asymmetry_even=0.1, asymmetry_uneven=0.0, triangle_plain=1.0),
            "does not hold",
        ),
    ],
)
def test_registration_energies(record: dict[str, Any], outcome: str):
    assert concluded("registration-energies", lambda trial: record).outcome == outcome


def test_a_lost_seed_leaves_registration_in_part():
    finding = concluded("registration-energies", lambda trial: None if trial.at["seed"] == 1 else registered())
    assert finding.outcome == "holds in part" and finding.verdicts[0].n == 2
