"""Alignment measures on unrelated latents: independent Gaussians, as many rows and columns as papers use.

    in sample   R² → d/N however unrelated, CKA large         held out or debiased   R² ≤ 0, CKA ≈ 0

A permutation p-value is valid for biased measures too: P(p ≤ α) = α for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are loaded on first use

from jepatlas.alignment.maps import RidgeMap
from jepatlas.alignment.nulls import Null, permutation_null
from jepatlas.alignment.similarity import METRICS
from jepatlas.core.figures import Curve, Curves, Table
from jepatlas.core.linear import hold_out, least_squares, r2
from jepatlas.core.records import Direction, Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.latent_pairs import random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, count_met, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, mean_and_interval, mean_and_range, mean_and_range_of

__all__ = ["EXPERIMENT", "run", "smoother"]

MEASURES = {
    "r2_in_sample": "R², in sample",
    "cka": "CKA, biased",
    "r2": "R², held out",
    "cka_debiased": "CKA, debiased",
    "dsc": "DSC",
    "nos_10": "NOS@10",
}
SIMILARITIES = ("cka", "cka_debiased", "dsc", "nos_10")
DIRECTIONS: dict[str, Direction] = {name: "lower" if name == "nos_10" else "higher" for name in MEASURES}
BIASED = {"r2_in_sample": 0.5, "cka": 0.3}
"""Values that count as large."""
ZERO = 0.02  # debiased CKA up to this size counts as zero
LEVEL = 0.1  # of the p-values whose frequency is checked
CONFIDENCE = 0.99  # of the interval of that frequency

CLAIM = Claim(
    statement="In-sample R² and biased CKA are large for unrelated latents; held-out R², debiased CKA and permutation "
    "p-values are not.",
    source="Our reading: Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models reports R², "
    "CKA, DSC and NOS without a null, and takes their agreement for a sign that none is an artefact (section 4.5)",
)


SCALES = {
    "tiny": ({"rows": 60, "columns": 40, "repetitions": 3, "permutations": 9}, 1),
    "small": ({"rows": 500, "columns": 384, "repetitions": 40, "permutations": 19}, 4),
    "paper": ({"rows": 500, "columns": 384, "repetitions": 100, "permutations": 99}, 10),
}
"""Settings of a trial, and number of seeds."""


def trials(scale: Scale, seed: int) -> list[Trial]:
    settings, seeds = SCALES[scale]
    return [Trial({"seed": s}, run, settings | {"seed": s}) for s in range(seed, seed + seeds)]


def run(settings: Plain, folder: str) -> Plain:
    """Many pairs of unrelated latents, and one pair that is a rotation with noise of the size of the signal."""
    del folder
    shape = (settings["rows"], settings["columns"])
    seed = settings["seed"]
    permutations = settings["permutations"]
    found: list[Mapping[str, Null]] = []
    for repetition in range(settings["repetitions"]):
        rng = numpy_generator(seed, "independent", repetition)
        a, b = rng.standard_normal((2, *shape))
        found.append(_nulls(a, b, permutations, rng))
    values = {name: mean_and_range_of([nulls[name].value for nulls in found]) for name in MEASURES}
    values["r2_ridge"] = Estimate.exact(_ridge(*numpy_generator(seed, "ridge").standard_normal((2, *shape))), 1)
    related = _nulls(*_related(shape, seed), permutations, numpy_generator(seed, "r"))
    values |= {f"related_{name}": Estimate.exact(null.value, 1) for name, null in related.items()}
    values |= {f"related_p_{name}": Estimate.exact(null.p, 1) for name, null in related.items()}
    p_values = {name: [nulls[name].p for nulls in found] for name in MEASURES}
    return {"status": "finished", "verdicts": as_verdicts(values, "means over repetitions"), "p": p_values}


def _related(shape: tuple[int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = numpy_generator(seed, "related")
    a, noise = rng.standard_normal((2, *shape))
    return a, a @ random_chart(shape[1], 1.0, rng).T + noise


def _ridge(a: np.ndarray, b: np.ndarray) -> float:
    """Held-out R² with a cross-validated penalty."""
    half = len(a) // 2
    return float(RidgeMap().fit(a[:half], b[:half]).score(a[half:], b[half:]))


def _nulls(a: np.ndarray, b: np.ndarray, permutations: int, rng: np.random.Generator) -> Mapping[str, Null]:
    split = hold_out(len(a), rng)
    inside = smoother(a, a)
    across = smoother(a[split.fit], a[split.score])

    def statistic(order: np.ndarray) -> Mapping[str, float]:
        other = b[order]
        scores = {"r2_in_sample": r2(other, inside @ other), "r2": r2(other[split.score], across @ other[split.fit])}
        return scores | {name: METRICS[name](a, other) for name in SIMILARITIES}

    return permutation_null(statistic, len(a), rng, directions=DIRECTIONS, permutations=permutations)


def smoother(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """H such that H y is the prediction at `others` of least squares on (x, y); solves for x once for many y."""
    return least_squares(x, np.eye(len(x))).apply(others)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    found = {name: mean_and_range(results, name) for name in (*MEASURES, "r2_ridge")}
    p_values = {name: [p for r in results for p in r.record.get("p", {}).get(name, [])] for name in MEASURES}
    early = {name: _early_share(values) for name, values in p_values.items()}
    calibrated = [share.low <= LEVEL <= share.high for share in early.values()]
    large = all(found[name].value >= least for name, least in BIASED.items())
    near_zero = mean_and_interval(results, "r2").high <= 0 and abs(found["cka_debiased"].value) <= ZERO
    shown = {name: f"{one.value:z.3f}" for name, one in found.items()}
    criteria = (
        Criterion(
            "R² in sample; biased CKA",
            f"{shown['r2_in_sample']}; {shown['cka']}",
            "; ".join(f"≥ {least}" for least in BIASED.values()),
            large,
        ),
        Criterion(
            "R² held out (with a chosen penalty); debiased CKA",
            f"{shown['r2']} ({shown['r2_ridge']}); {shown['cka_debiased']}",
            f"≤ 0; within {ZERO} of 0",
            near_zero,
        ),
        Criterion.for_all(f"measures with P(p ≤ {LEVEL:g}) = {LEVEL:g}", calibrated),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"For unrelated latents R² is {found['r2_in_sample'].value:.2f} in sample and {found['r2'].value:z.2f} held "
        f"out; p-values are calibrated for {count_met(calibrated)} measures.",
        criteria=criteria,
        verdicts=(_verdict(found["r2"]),),
        figures=(_figure(p_values),),
        tables=(_table(results, found, early),),
    )


def _early_share(p_values: Sequence[float]) -> Estimate:
    """Share of p ≤ LEVEL with the exact binomial interval."""
    count = sum(p <= LEVEL + 1e-9 for p in p_values)
    limits = scipy.stats.binomtest(count, len(p_values)).proportion_ci(CONFIDENCE)
    return Estimate(count / len(p_values), float(limits.low), float(limits.high), len(p_values))


def _verdict(held_out: Estimate) -> Verdict:
    return Verdict.judge(
        "r2_held_out",
        held_out,
        direction="lower",
        threshold=0.0,
        good="A map between unrelated latents predicts nothing on held-out rows.",
        bad="A map between unrelated latents has a positive R² on held-out rows.",
    )


def _figure(p_values: Mapping[str, Sequence[float]]) -> Curves:
    series = []
    for name, values in p_values.items():
        shares = (np.arange(1, len(values) + 1) / len(values)).tolist()
        series.append(Curve(MEASURES[name], sorted(values), shares))
    calibrated = Curve("calibrated", [0.0, 1.0], [0.0, 1.0], dash=True)
    return Curves(
        title="p-values of unrelated latents",
        x_label="p",
        y_label="share of repetitions with at most that p",
        series=[*series, calibrated],
    )


def _table(results: Sequence[Result], found: Mapping[str, Estimate], early: Mapping[str, Estimate]) -> Table:
    rows = []
    for name, title in MEASURES.items():
        largest = max(result.value(f"related_p_{name}") for result in results)
        related = mean_and_range(results, f"related_{name}")
        rows.append([title, DIRECTIONS[name], cell(found[name]), cell(early[name]), cell(related), f"{largest:.2f}"])
    columns = [
        "measure",
        "better",
        "unrelated, mean over seeds [range]",
        f"share of p ≤ {LEVEL:g} [{CONFIDENCE:.0%}]",
        "a rotation with as much noise",
        "its largest p",
    ]
    return Table("Unrelated and related latents", columns, rows)


EXPERIMENT = Experiment("alignment-nulls", "Alignment measures on unrelated latents", CLAIM, trials, conclude)
