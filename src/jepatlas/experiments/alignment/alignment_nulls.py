"""What there is to see in nothing: every measure on independent Gaussians, as many rows and columns as papers use.

    in sample   R² → d/N however unrelated, CKA large         held out or debiased   R² ≤ 0, CKA ≈ 0

A p-value by permutation does not ask whether a measure is biased: P(p ≤ α) = α for all of them, or it is broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are asked for

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.nulls import Null, permutation_null
from jepatlas.alignment.similarity import METRICS
from jepatlas.core.linear import hold_out, least_squares, r2
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.charts import random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.seed_tables import cell, mean_and_interval, mean_and_range

__all__ = ["EXPERIMENT", "run", "smoother"]

SHOWN = {
    "r2_in_sample": "R², in sample",
    "cka": "CKA, biased",
    "r2": "R², held out",
    "cka_debiased": "CKA, debiased",
    "dsc": "DSC",
    "nos_10": "NOS@10",
}
OWN = ("cka", "cka_debiased", "dsc", "nos_10")
DIRECTIONS: dict[str, Direction] = {name: "lower" if name == "nos_10" else "higher" for name in SHOWN}
FOOLED = {"r2_in_sample": 0.5, "cka": 0.3}
ZERO, LEVEL, CONFIDENCE = 0.02, 0.1, 0.99

CLAIM = Claim(
    statement="In-sample R² and biased CKA are large for latents that have nothing to do with each other; held-out R², "
    "debiased CKA and p-values by permutation are not fooled.",
    source="Our reading: Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models reports R², "
    "CKA, DSC and NOS without a null, and takes their agreement for a sign that none is an artefact (section 4.5)",
)


@dataclass(frozen=True)
class Plan:
    rows: int
    columns: int
    repetitions: int  # in one trial
    permutations: int
    seeds: int


SCALES = {
    "tiny": Plan(60, 40, 3, 9, 1),
    "small": Plan(500, 384, 40, 19, 4),
    "paper": Plan(500, 384, 100, 99, 10),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    settings = {
        "rows": plan.rows,
        "columns": plan.columns,
        "repetitions": plan.repetitions,
        "permutations": plan.permutations,
    }
    return [Trial({"seed": s}, run, settings | {"seed": s}) for s in range(seed, seed + plan.seeds)]


def run(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """Unrelated latents, again and again; and once latents that are a rotation of each other with as much noise."""
    del folder
    shape, found = (settings["rows"], settings["columns"]), list[dict[str, Null]]()
    for repetition in range(settings["repetitions"]):
        rng = numpy_generator(settings["seed"], "independent", repetition)
        a, b = rng.standard_normal((2, *shape))
        found.append(_nulls(a, b, settings["permutations"], rng))
    values = {name: _spread([nulls[name].value for nulls in found]) for name in SHOWN}
    values["r2_ridge"] = _ridge(*numpy_generator(settings["seed"], "ridge").standard_normal((2, *shape)))
    related = _nulls(
        *_related(shape, settings["seed"]), settings["permutations"], numpy_generator(settings["seed"], "r")
    )
    values |= {f"related_{name}": _spread([null.value]) for name, null in related.items()}
    values |= {f"related_p_{name}": _spread([null.p]) for name, null in related.items()}
    p_values = {name: [nulls[name].p for nulls in found] for name in SHOWN}
    return {"status": "finished", "verdicts": as_verdicts(values, "means over repetitions"), "p": p_values}


def _spread(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.mean(values)), float(np.min(values)), float(np.max(values)), len(values))


def _related(shape: tuple[int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = numpy_generator(seed, "related")
    a, noise = rng.standard_normal((2, *shape))
    return a, a @ random_chart(shape[1], 1.0, rng).T + noise


def _ridge(a: np.ndarray, b: np.ndarray) -> Estimate:
    """Held-out R² where the penalty is chosen, too: what a careful user would see."""
    half = len(a) // 2
    return _spread([float(RidgeMap().fit(a[:half], b[:half]).score(a[half:], b[half:]))])


def _nulls(a: np.ndarray, b: np.ndarray, permutations: int, rng: np.random.Generator) -> dict[str, Null]:
    split = hold_out(len(a), rng)
    inside, across = smoother(a, a), smoother(a[split.fit], a[split.score])

    def statistic(order: np.ndarray) -> Mapping[str, float]:
        other = b[order]
        scores = {"r2_in_sample": r2(other, inside @ other), "r2": r2(other[split.score], across @ other[split.fit])}
        return scores | {name: METRICS[name](a, other) for name in OWN}

    return permutation_null(statistic, len(a), rng, directions=DIRECTIONS, permutations=permutations)


def smoother(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """H such that H y is what least squares on (x, y) predicts at other rows: y may change, x is solved for once."""
    return least_squares(x, np.eye(len(x))).apply(others)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    found = {name: mean_and_range(results, name) for name in (*SHOWN, "r2_ridge")}
    p_values = {name: [p for result in results for p in result.record.get("p", {}).get(name, [])] for name in SHOWN}
    early = {name: _share(values) for name, values in p_values.items()}
    fooled = [found[name].value >= least for name, least in FOOLED.items()]
    honest = [mean_and_interval(results, "r2").high <= 0, abs(found["cka_debiased"].value) <= ZERO]
    calibrated = [share.low <= LEVEL <= share.high for share in early.values()]
    rules = [all(fooled), all(honest), all(calibrated)]
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"Independent Gaussians, {SCALES[scale].rows} rows of {SCALES[scale].columns}: R² in sample "
        f"{found['r2_in_sample'].value:.2f}, biased CKA {found['cka'].value:.2f}; held-out R² "
        f"{found['r2'].value:z.2f}, or {found['r2_ridge'].value:z.2f} with a chosen penalty, debiased CKA "
        f"{found['cka_debiased'].value:z.3f}; "
        f"p ≤ {LEVEL:g} in {min(s.value for s in early.values()):.3f} to {max(s.value for s in early.values()):.3f} of "
        f"{len(p_values['r2'])} repetitions, which agrees with {LEVEL:g} for {sum(calibrated)} of {len(calibrated)} "
        "measures.",
        short=f"in sample R² {found['r2_in_sample'].value:.2f}; held out {found['r2'].value:z.2f}; p right for "
        f"{sum(calibrated)} of {len(calibrated)}",
        verdicts=(_verdict(found["r2"]),),
        figures=(_figure(p_values),),
        tables=(_table(results, found, early),),
    )


def _share(p_values: Sequence[float]) -> Estimate:
    """How often p ≤ LEVEL, with the exact binomial interval."""
    count = sum(p <= LEVEL + 1e-9 for p in p_values)
    limits = scipy.stats.binomtest(count, len(p_values)).proportion_ci(CONFIDENCE)
    return Estimate(count / len(p_values), float(limits.low), float(limits.high), len(p_values))


def _verdict(held_out: Estimate) -> Verdict:
    return Verdict.judge(
        "r2_held_out",
        held_out,
        direction="lower",
        threshold=0.0,
        good="On rows that it was not fitted on, a map between unrelated latents predicts nothing.",
        bad="On rows that it was not fitted on, a map between unrelated latents seems to predict something.",
    )


def _figure(p_values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    series: list[dict[str, Any]] = [
        {"name": SHOWN[name], "x": sorted(values), "y": (np.arange(1, len(values) + 1) / len(values)).tolist()}
        for name, values in p_values.items()
    ]
    even = {"name": "calibrated", "x": [0.0, 1.0], "y": [0.0, 1.0], "dash": True}
    return {
        "kind": "curves",
        "title": "p-values of unrelated latents",
        "x_label": "p",
        "y_label": "share of repetitions with at most that p",
        "series": [*series, even],
    }


def _table(results: Sequence[Result], found: Mapping[str, Estimate], early: Mapping[str, Estimate]) -> dict[str, Any]:
    rows = [
        [
            title,
            DIRECTIONS[name],
            cell(found[name]),
            cell(early[name]),
            cell(mean_and_range(results, f"related_{name}")),
            f"{max(result.value(f'related_p_{name}') for result in results):.2f}",
        ]
        for name, title in SHOWN.items()
    ]
    columns = [
        "measure",
        "better",
        "unrelated, mean over seeds [extremes]",
        f"share of p ≤ {LEVEL:g} [{CONFIDENCE:.0%}]",
        "a rotation with as much noise",
        "its largest p",
    ]
    return {"title": "Unrelated and related latents", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("alignment-nulls", "What there is to see in nothing", CLAIM, trials, conclude)
