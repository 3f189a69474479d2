"""Two states with different rates: the fast one is lost once the slow one's second harmonic is slower.

Recovery of both needs ρ_min > ρ_max²; otherwise He₂ of the slow state is slower than the fast state. The argument is
about slowness under a constraint on second moments, but SIGReg constrains more. So LeJEPA is compared with two methods
that constrain second moments only: the covariance loss that the study calls VICReg ("whitening"), and the
eigenproblem ("spectral").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial
from jepatlas.experiments.engine.latent_trials import (
    fit_spectral,
    fresh_observations,
    r2_of_each_state,
    recipe_for,
    train_and_measure,
)
from jepatlas.experiments.engine.rules import Criterion, as_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select, span
from jepatlas.objectives import CovarianceConfig
from jepatlas.recipes import Recipe
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, SinusoidalShear

__all__ = ["EXPERIMENT", "run_spectral", "run_trained"]

METHODS = ("LeJEPA", "whitening", "spectral")
TARGETS = ("slow state", "fast state", "second harmonic of the slow state")
SLOW = 0.95
WINDOW = SLOW**2
KEPT = 0.9
LOST = 0.5

CLAIM = Claim(
    statement="Simultaneous recovery needs ρ_min > ρ_max²: below that the fast state is replaced by a harmonic of the "
    "slow one.",
    source="When Does LeJEPA Learn a World Model?, the appendix on slow feature analysis",
    proven="as a property of the spectrum; no experiment is given",
)


@dataclass(frozen=True)
class Plan:
    steps: int
    seeds: int
    pairs: int
    fast: tuple[float, ...]


SCALES = {
    "tiny": Plan(40, 1, 2000, (0.95, 0.7)),
    "small": Plan(3000, 3, 30_000, (0.95, 0.93, 0.915, 0.89, 0.85, 0.7)),
    "paper": Plan(20_000, 5, 200_000, (0.95, 0.94, 0.93, 0.92, 0.91, 0.9, 0.89, 0.88, 0.85, 0.8, 0.7, 0.5)),
}

Means = dict[tuple[str, float, int], Estimate]  # mean R² by method, rate of the fast state, and target


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    trials = []
    for fast in plan.fast:
        world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=(SLOW, fast)), SinusoidalShear())
        for s in range(seed, seed + plan.seeds):
            recipe = recipe_for(scale, world, steps=plan.steps, seed=s)
            whitening = replace(recipe, objective=CovarianceConfig())
            where = {"fast": fast, "seed": s}
            trials += [
                Trial({"method": "LeJEPA"} | where, run_trained, {"recipe": to_plain(recipe)}),
                Trial({"method": "whitening"} | where, run_trained, {"recipe": to_plain(whitening)}),
                Trial({"method": "spectral"} | where, run_spectral, {"recipe": to_plain(recipe), "pairs": plan.pairs}),
            ]
    return trials


def run_trained(settings: Plain, folder: str) -> Plain:
    return train_and_measure(settings["recipe"], folder, 20_000, lambda recipe, _, s: _measure(s.h, s.z, recipe.seed))


def run_spectral(settings: Plain, folder: str) -> Plain:
    del folder
    recipe = from_plain(Recipe, settings["recipe"])
    encoder = fit_spectral(recipe, settings["pairs"])
    x, z = fresh_observations(recipe, 20_000)
    return {"status": "finished", "verdicts": _measure(encoder.apply(x), z, recipe.seed)}


def _measure(h: np.ndarray, z: np.ndarray, seed: int) -> list[Plain]:
    """R² of the slow state (0), of the fast state (1), and of the slow state's second harmonic (2)."""
    targets = np.column_stack([z, (np.square(z[:, 0]) - 1) / np.sqrt(2)])
    return as_verdicts(r2_of_each_state(h, targets, seed), "held-out R² by state")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    rates = SCALES[scale].fast
    means: Means = {}
    for method in METHODS:
        for fast in rates:
            runs = select(results, method=method, fast=fast)
            means |= {(method, fast, i): mean_and_range(runs, f"r2_{i}") for i in range(len(TARGETS))}
    criteria = []
    for method in METHODS:
        inside = [means[method, fast, 1].value for fast in rates if fast > WINDOW]
        outside = [means[method, fast, 1].value for fast in rates if fast < WINDOW]
        criteria += [
            Criterion(f"{method}: R² of the fast state inside", span(inside), f"≥ {KEPT}", min(inside) >= KEPT),
            Criterion(f"{method}: R² of the fast state outside", span(outside), f"≤ {LOST}", max(outside) <= LOST),
        ]
    lejepa = [means["LeJEPA", fast, 1].value for fast in rates if fast < WINDOW]
    return Finding(
        outcome_of_criteria(criteria),
        f"Outside the window LeJEPA recovers the fast state with R² {span(lejepa)}.",
        criteria=tuple(criteria),
        verdicts=tuple(_verdict(means, method, rates) for method in METHODS),
        figures=(_figure(means, rates),),
        tables=(_table(means, rates),),
    )


def _verdict(means: Means, method: str, rates: Sequence[float]) -> Verdict:
    nearest = max(fast for fast in rates if fast < WINDOW)
    return Verdict.judge(
        f"lost_outside_{method.lower()}",
        means[method, nearest, 1],
        direction="lower",
        threshold=LOST,
        good=f"Just outside the window (ρ = {nearest}) the fast state is lost at every seed (limits: range).",
        bad=f"Just outside the window (ρ = {nearest}) the fast state is not lost at every seed (limits: range).",
    )


def _figure(means: Means, rates: Sequence[float]) -> Curves:
    window = Curve("window ρ_max²", [WINDOW, WINDOW], [0.0, 1.0], dash=True)
    panels = []
    for method in METHODS:
        series = [curve(name, rates, [means[method, fast, i] for fast in rates]) for i, name in enumerate(TARGETS)]
        panels.append(CurvePanel([*series, window], method))
    return Curves(
        title=f"Recovery by two latents (slow rate {SLOW})",
        x_label="ρ of the fast state",
        y_label="held-out R²",
        panels=panels,
    )


def _table(means: Means, rates: Sequence[float]) -> Table:
    rows = []
    for method in METHODS:
        for fast in rates:
            cells = [cell(means[method, fast, i]) for i in range(len(TARGETS))]
            rows.append([method, fast, "inside" if fast > WINDOW else "outside", *cells])
    columns = ["method", "ρ fast", "window", "R² slow state", "R² fast state", "R² harmonic of the slow"]
    return Table("Means over seeds [range]", columns, rows)


EXPERIMENT = Experiment("anisotropic", "Rates that leave the window", CLAIM, trials, conclude)
