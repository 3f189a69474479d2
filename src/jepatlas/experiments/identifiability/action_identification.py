"""Action-conditioned identification, h' = Ah + Bu, with and without persistent excitation: a claim about jepatlas.

Worlds z' = Az + Bu + noise with a random stable A. Latents h = Qz are certified with their actions. They must pass if
the actions were exciting, and must not if they were not, or if latents, actions or steps were corrupted. Without
excitation, A and B fitted to the latents agree with those fitted to the states, and both are wrong; therefore errors
are also measured against the true A and B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import success_rate
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, combined, decide
from jepatlas.experiments.engine.seed_tables import bars, cell, finished_only, median_and_range_of
from jepatlas.identifiability import certify_dynamics
from jepatlas.workflows.certify import certify_arrays

__all__ = ["EXPERIMENT", "KINDS", "simulate"]

POWER = 0.9
FALSE_PASSES = 0.05
STEPS = 2000
NOISE = 0.3
CONTRACTION = 0.6
GAIN = 0.3  # of feedback; the closed loop stays stable, because 0.6 + 0.3 < 1
DIMS = (2, 4)
CASES = 2  # of each trial
SEEDS = {"tiny": 1, "small": 5, "paper": 50}

CLAIM = Claim(
    statement="With exciting actions `jepatlas certify` recognises identified dynamics h' = Ah + Bu with power "
    f"{POWER} or more; without, or with other latents, actions or steps, at most {FALSE_PASSES:.0%} pass.",
    source="jepatlas, of its own certificate",
)

BOTH = ("h", "h_next")
Arrays = dict[str, np.ndarray]
Policy = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """How actions follow from the state and the last action, and how the arrays are changed afterwards."""

    passes: bool
    policy: Policy
    change: Callable[[Arrays, np.random.Generator], Arrays] = lambda arrays, rng: arrays
    exciting: bool = True


def _random(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    del z
    return rng.standard_normal(last.shape)


def _correlated(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 0.7 * last + np.sqrt(1 - 0.7**2) * _random(z, last, rng)


def _feedback(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    del rng
    return -GAIN * np.resize(z, last.shape)


def _noisy_feedback(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return _feedback(z, last, rng) + _random(z, last, rng)


def _one_unused(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.append(_random(z, last[1:], rng), 0.5)


def _two_alike(z: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    first = rng.standard_normal()
    return np.append([first, first], rng.standard_normal(len(last) - 2))


def _scaled(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    del rng
    return arrays | {name: 3 * arrays[name] + 1 for name in BOTH}


def _noisy(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    return arrays | {name: arrays[name] + 0.05 * rng.standard_normal(arrays[name].shape) for name in BOTH}


def _sheared(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    del rng
    shear = np.eye(arrays["h"].shape[1])
    shear[0, 1] = 1.5
    return arrays | {name: arrays[name] @ shear for name in BOTH}


def _shuffled_actions(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    return arrays | {"u": rng.permutation(arrays["u"])}


def _other_frame(arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """The next latents are those of another model."""
    return arrays | {"h_next": arrays["h_next"] @ _rotation(arrays["h"].shape[1], rng)}


KINDS = {
    "random actions": Kind(True, _random),
    "correlated actions": Kind(True, _correlated),
    "noisy feedback": Kind(True, _noisy_feedback),
    "scaled latents": Kind(True, _random, _scaled),
    "latents with a little noise": Kind(True, _random, _noisy),
    "feedback without noise": Kind(False, _feedback, exciting=False),
    "an unused action": Kind(False, _one_unused, exciting=False),
    "two actions alike": Kind(False, _two_alike, exciting=False),
    "sheared latents": Kind(False, _random, _sheared),
    "shuffled actions": Kind(False, _random, _shuffled_actions),
    "next latents of another model": Kind(False, _random, _other_frame),
}


def _rotation(dim: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((dim, dim)))[0]


def simulate(kind: Kind, dim: int, rng: np.random.Generator) -> tuple[Arrays, tuple[np.ndarray, np.ndarray]]:
    """One trajectory with as many actions as states: h, u, h_next, z, z_next; and the true A and B."""
    a = CONTRACTION * _rotation(dim, rng)
    b = _rotation(dim, rng)
    z = np.zeros((STEPS + 1, dim))
    u = np.zeros((STEPS + 1, dim))
    for t in range(STEPS):
        u[t + 1] = kind.policy(z[t], u[t], rng)
        z[t + 1] = a @ z[t] + b @ u[t + 1] + NOISE * rng.standard_normal(dim)
    q = _rotation(dim, rng)
    arrays = {"h": z[:-1] @ q, "h_next": z[1:] @ q, "u": u[1:], "z": z[:-1], "z_next": z[1:]}
    return kind.change(arrays, rng), (a, b)


def trials(scale: Scale, seed: int) -> list[Trial]:
    every = []
    for name, dim, s in product(KINDS, DIMS, range(seed, seed + SEEDS[scale])):
        settings = {"kind": name, "dim": dim, "cases": CASES, "seed": s}
        every.append(Trial({"kind": name, "dim": dim, "seed": s}, run, settings))
    return every


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """For each simulated case whether it passes, and the errors of A and B against the truth."""
    del folder  # nothing is trained
    kind = KINDS[settings["kind"]]
    numbers: dict[str, list[Any]] = {"passed": [], "error_a": [], "error_b": [], "excitation": []}
    for case in range(settings["cases"]):
        rng = np.random.default_rng([settings["seed"], case, settings["dim"], list(KINDS).index(settings["kind"])])
        arrays, truth = simulate(kind, settings["dim"], rng)
        record = certify_arrays("Certificate", arrays, rho=None, seed=case, quick=True)
        actions = (arrays[name] for name in ("h", "u", "h_next", "z"))
        found = {v.name: v.value for v in certify_dynamics(*actions, truth=truth, seed=case, replicates=2)}
        numbers["passed"].append(record.passed)
        numbers["error_a"].append(found["conjugacy_a"])
        numbers["error_b"].append(found["conjugacy_b"])
        numbers["excitation"].append(found["persistent_excitation"])
    return {"status": "finished", "verdicts": [], "numbers": numbers}


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    power = _rate(results, True)
    false_passes = _rate(results, False)
    outcomes = [
        decide([power], threshold=POWER),
        decide([false_passes], threshold=FALSE_PASSES, direction="lower"),
    ]
    return Finding(
        combined(outcomes),
        f"Identified and excited cases pass at {cell(power)}, others at {cell(false_passes)}.",
        criteria=(
            Criterion("power", cell(power), f"above {POWER}", outcomes[0] == "holds"),
            Criterion("false passes", cell(false_passes), f"below {FALSE_PASSES}", outcomes[1] == "holds"),
        ),
        verdicts=(
            Verdict.judge("power", power, direction="higher", threshold=POWER, good="Share of right cases that pass."),
            Verdict.judge(
                "false_passes",
                false_passes,
                direction="lower",
                threshold=FALSE_PASSES,
                good="Share of wrong cases that pass.",
            ),
        ),
        figures=(_figure(results),),
        tables=(_table(results),),
    )


def _numbers(results: Sequence[Result], name: str, kind: str) -> list[Any]:
    of_kind = [result for result in finished_only(results) if result.at["kind"] == kind]
    return [number for result in of_kind for number in result.record["numbers"][name]]


def _rate(results: Sequence[Result], passes: bool) -> Estimate:
    chosen = [name for name, kind in KINDS.items() if kind.passes is passes]
    passed = [one is True for name in chosen for one in _numbers(results, "passed", name)]
    return success_rate(np.array(passed)) if passed else Estimate.undefined(0)


def _figure(results: Sequence[Result]) -> Bars:
    names = [name for name in KINDS if _numbers(results, "passed", name)]
    series = []
    for label, key in (("A", "error_a"), ("B", "error_b")):
        errors = [median_and_range_of(_numbers(results, key, name)) for name in names]
        series.append(bars(f"error of {label}", errors))
    return Bars(
        title="Errors against the true A and B",
        y_label="relative error",
        names=names,
        series=series,
        note="Median and range over cases. Up to 0.1 is allowed.",
    )


def _table(results: Sequence[Result]) -> Table:
    rows = []
    for name, kind in KINDS.items():
        passed = [one is True for one in _numbers(results, "passed", name)]
        if not passed:
            continue
        medians = [f"{np.median(_numbers(results, key, name)):.3f}" for key in ("excitation", "error_a", "error_b")]
        should = "pass" if kind.passes else "not pass"
        rows.append([name, "yes" if kind.exciting else "no", should, f"{sum(passed)} of {len(passed)}", *medians])
    columns = ["case", "exciting", "should", "passed", "excitation", "error of A", "error of B"]
    return Table("Cases; medians", columns, rows)


EXPERIMENT = Experiment(
    "action-identification", "Dynamics under actions, with and without excitation", CLAIM, trials, conclude
)
