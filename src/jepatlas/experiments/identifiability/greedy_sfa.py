"""Sequential against simultaneous extraction of slow functions, over the dimension n and three sets of rates.

    simultaneous   the n leading eigenfunctions
    deflation      one at a time, each uncorrelated with those before ("greedy SFA")
    xSFA           one at a time, with all products of up to three earlier ones removed from the features before

Rates are `equal`; `distinct`, inside the window ρ_min > ρ_max² in which no harmonic is slower than a coordinate; and
`wide`, outside of it. All methods use the same features of x (random Fourier features; kernel and ridge are chosen for
the simultaneous fit) and the same pairs, and solve each stage exactly. So they differ in the order of extraction only,
and errors are errors of estimation. LeJEPA is trained for comparison: its loss is invariant under rotations of the
latents, so it finds distinct coordinates only up to a rotation, which linear SFA of its latents can undo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.linear import hold_out, least_squares
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator, torch_generator
from jepatlas.core.stats import bootstrap
from jepatlas.data import Transitions
from jepatlas.experiments.engine.experiment import (
    Claim,
    Criterion,
    Experiment,
    Finding,
    Result,
    Scale,
    Trial,
    as_verdicts,
    outcome_of_criteria,
)
from jepatlas.experiments.engine.latent_trials import LatentSample, recipe_for, train_and_measure
from jepatlas.experiments.engine.run_tables import run_table
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_interval, mean_and_range, select
from jepatlas.experiments.identifiability.sequential_sfa import extract_one_by_one
from jepatlas.identifiability import SpectrumSettings, linear_sfa, recovery
from jepatlas.identifiability.spectral.pair_rows import SCORE, SplitPairs
from jepatlas.identifiability.spectral.solver import SpectralSolver
from jepatlas.objectives import PairObjective
from jepatlas.recipes import Recipe
from jepatlas.worlds import InvertibleMLP, LatentWorld, OrnsteinUhlenbeck

__all__ = ["EXPERIMENT", "run_lejepa", "run_spectral"]

HELD_OUT = 10_000
ENDS = {"equal": (0.7, 0.7), "distinct": (0.7, 0.56), "wide": (0.9, 0.7)}
"""ρ of the slowest and the fastest coordinate; the others are evenly spaced between them."""
INSIDE = ("equal", "distinct")  # the rates inside the window
SEQUENTIAL = {"deflation": 1, "xsfa": 3}
"""Degree of the monomials that are removed."""
METHODS = ("simultaneous", *SEQUENTIAL)
TRAINED = ("lejepa", "turned")
NAMES = {"xsfa": "xSFA", "lejepa": "LeJEPA", "turned": "LeJEPA, then linear SFA"}
MARGIN = 0.02  # of R²: a smaller difference is no degradation
MEANING = "held out; MCC: latents and states matched one to one"

CLAIM = Claim(
    statement="Sequential extraction, as in slow feature analysis, accumulates errors and degrades beyond a "
    "few dimensions; simultaneous extraction does not. Distinct rates identify each coordinate, equal ones only a "
    "rotation.",
    source="When Does LeJEPA Learn a World Model?, the appendix on slow feature analysis, and a review of it",
    proven="(for the exact optimum) a permutation by sequential extraction with distinct rates, a rotation by "
    "simultaneous extraction with equal ones",
)


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]
    pairs: int
    features: int
    seeds: int
    trained_dim: int
    steps: int


SCALES = {
    "tiny": Plan((2, 3), 1500, 32, 1, 2, 30),
    "small": Plan((2, 4, 8, 12), 20_000, 512, 3, 4, 2500),
    "paper": Plan((2, 4, 8, 12), 40_000, 768, 5, 8, 20_000),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    seeds = range(seed, seed + plan.seeds)
    for rates, dim, s in product(ENDS, plan.dims, seeds):
        world = to_plain(_world(dim, rates, s))
        settings = {"world": world, "pairs": plan.pairs, "features": plan.features, "seed": s}
        trials.append(Trial({"kind": "spectral", "rates": rates, "dim": dim, "seed": s}, run_spectral, settings))
    for rates, s in product(INSIDE, seeds):
        recipe = recipe_for(scale, _world(plan.trained_dim, rates, s), steps=plan.steps, seed=s)
        at = {"kind": "trained", "rates": rates, "dim": plan.trained_dim, "seed": s}
        trials.append(Trial(at, run_lejepa, {"recipe": to_plain(recipe)}))
    return trials


def _world(dim: int, rates: str, seed: int) -> LatentWorld:
    each = tuple(float(rho) for rho in np.linspace(*ENDS[rates], dim))
    return LatentWorld(OrnsteinUhlenbeck(dim=dim, rho=each), InvertibleMLP(layers=2, seed=seed))


def run_spectral(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    world, seed = from_plain(LatentWorld, settings["world"]), settings["seed"]
    pairs = Transitions().draw(world, settings["pairs"], torch_generator(seed, "spectral"))
    fresh = Transitions().draw(world, HELD_OUT, torch_generator(seed, "fresh"))
    x, x_next, others, z = (t.double().numpy() for t in (pairs.x, pairs.x_next, fresh.x, fresh.z))
    options = SpectrumSettings(functions=world.dim, features=settings["features"], pilot=5000)
    solution = SpectralSolver(SplitPairs(x, x_next, seed=seed, below=SCORE), options, seed).fit(world.dim)
    together = solution.encoder.apply(others)
    found = _scores("simultaneous", together, z, seed)
    phi, phi_next, phi_others = (solution.encoder.features(view) for view in (x, x_next, others))
    for method, degree in SEQUENTIAL.items():
        h = extract_one_by_one(phi, phi_next, phi_others, world.dim, ridge=solution.ridge, degree=degree)
        found |= _scores(method, h, z, seed) | {f"behind_{method}": _behind(together, h, z, seed)}
    return {"status": "finished", "verdicts": as_verdicts(found, MEANING)}


def run_lejepa(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_measure(settings["recipe"], folder, 2 * HELD_OUT, _measure)


def _measure(recipe: Recipe, objective: PairObjective, drawn: LatentSample) -> list[dict[str, Any]]:
    del objective
    turn = linear_sfa(drawn.h[:HELD_OUT], drawn.h_next[:HELD_OUT])
    h, z = drawn.h[HELD_OUT:], drawn.z[HELD_OUT:]
    found = _scores("lejepa", h, z, recipe.seed) | _scores("turned", turn.apply(h), z, recipe.seed)
    return as_verdicts(found, MEANING)


def _scores(method: str, h: np.ndarray, z: np.ndarray, seed: int) -> dict[str, Estimate]:
    split = hold_out(len(h), numpy_generator(seed, "split"))
    found = recovery(h, z, split, numpy_generator(seed, "rows"), replicates=100)
    return {f"{name}_{method}": found[name] for name in ("r2", "mcc")}


def _behind(h: np.ndarray, other: np.ndarray, z: np.ndarray, seed: int) -> Estimate:
    """R² of h minus R² of `other`, on the same rows."""
    fit, score = hold_out(len(z), numpy_generator(seed, "split"))
    residual = [np.square(z[score] - least_squares(a[fit], z[fit]).apply(a[score])).sum(1) for a in (h, other)]
    deviation = np.square(z[score] - z[score].mean(0)).sum(1)

    def statistic(weights: np.ndarray) -> dict[str, float]:
        return {"behind": float(weights @ (residual[1] - residual[0]) / (weights @ deviation))}

    return bootstrap(statistic, len(score), numpy_generator(seed, "rows"), replicates=100)["behind"]


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """Judged at the largest n: both sequential methods must degrade inside the window, and distinct rates raise MCC."""
    dims = SCALES[scale].dims
    spectral = select(results, kind="spectral")
    largest = {rates: select(spectral, rates=rates, dim=dims[-1]) for rates in ENDS}
    gaps: dict[tuple[str, str], Estimate] = {}
    for rates, method in product(ENDS, SEQUENTIAL):
        gaps[rates, method] = mean_and_interval(largest[rates], f"behind_{method}")
    criteria = []
    for method in SEQUENTIAL:
        inside = [gaps[rates, method] for rates in INSIDE]
        degrades = any(gap.value > MARGIN and gap.low > 0 for gap in inside)
        found = "; ".join(f"{rates} {cell(gap)}" for rates, gap in zip(INSIDE, inside, strict=True))
        criteria.append(
            Criterion(f"R² behind simultaneous, {NAMES.get(method, method)}", found, f"> {MARGIN}", degrades)
        )
    mcc = {rates: mean_and_interval(largest[rates], "mcc_simultaneous") for rates in INSIDE}
    higher = mcc["distinct"].low > mcc["equal"].high
    criteria.append(
        Criterion("MCC, distinct rates", cell(mcc["distinct"]), f"above equal: {cell(mcc['equal'])}", higher)
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"At n = {dims[-1]} the R² of xSFA is {gaps['equal', 'xsfa'].value:z.3f} below that of the simultaneous fit.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(*key, gap) for key, gap in gaps.items()),
        figures=(_figure(results, dims),),
        tables=(
            _table(spectral, METHODS, "Spectral runs"),
            _table(select(results, kind="trained"), TRAINED, "Trained runs"),
        ),
    )


def _verdict(rates: str, method: str, gap: Estimate) -> Verdict:
    return Verdict.judge(
        f"behind_{rates}_{method}",
        gap,
        direction="lower",
        threshold=MARGIN,
        good="At the largest n sequential extraction is as good as simultaneous extraction (difference in R²).",
        bad="At the largest n sequential extraction may be worse than simultaneous extraction (difference in R²).",
    )


def _figure(results: Sequence[Result], dims: Sequence[int]) -> Curves:
    def line(method: str, rates: str, name: str, label: str) -> Curve:
        runs = select(results, kind="spectral", rates=rates)
        points = [mean_and_range(select(runs, dim=dim), f"{name}_{method}") for dim in dims]
        return curve(label, dims, points)

    panels = []
    for rates, (slowest, fastest) in ENDS.items():
        series = [line(method, rates, "r2", NAMES.get(method, method)) for method in METHODS]
        panels.append(CurvePanel(series, f"{rates} rates, ρ from {slowest} to {fastest}"))
    matched = []
    for method, rates in product(("simultaneous", "xsfa"), INSIDE):
        matched.append(line(method, rates, "mcc", f"{NAMES.get(method, method)}, {rates}"))
    trained = select(results, kind="trained", rates="distinct")
    for method in TRAINED:
        score = mean_and_range(trained, f"mcc_{method}")
        matched.append(curve(f"{NAMES[method]}, distinct", [trained[0].at["dim"]], [score], points=True))
    return Curves(
        title="Sequential and simultaneous extraction",
        x_label="dimension n",
        log_x=True,
        y_label="held-out R² (last: MCC)",
        panels=[*panels, CurvePanel(matched, "MCC: each coordinate by itself")],
    )


def _table(results: Sequence[Result], methods: Sequence[str], title: str) -> Table:
    columns: dict[str, str] = {}
    for (name, label), method in product((("r2", "R²"), ("mcc", "MCC")), methods):
        columns[f"{label}, {NAMES.get(method, method)}"] = f"{name}_{method}"
    return run_table(title, results, {"rates": "rates", "n": "dim", "seed": "seed"}, columns)


EXPERIMENT = Experiment("greedy-sfa", "One slow feature at a time, or all at once", CLAIM, trials, conclude)
