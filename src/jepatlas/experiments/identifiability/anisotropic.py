"""Two rates that drift apart: where the fast direction falls below the slow one's second harmonic, it is lost.

Recovery of both needs ρ_min > ρ_max², else He₂ of the slow state is slower than the fast state itself. The argument is
about slowness under a constraint on second moments. So beside LeJEPA, whose SIGReg asks for more, stand two that ask
for no more: the covariance loss that the study calls VICReg ("whitening"), and the eigenproblem itself ("spectral").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.latent_trials import (
    fit_spectral,
    fresh_observations,
    r2_of_each_state,
    recipe_for,
    train_and_measure,
)
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range, select
from jepatlas.objectives import CovarianceConfig
from jepatlas.recipes import Recipe
from jepatlas.worlds import LatentWorld, OrnsteinUhlenbeck, SinusoidalShear

__all__ = ["EXPERIMENT", "run_spectral", "run_trained"]

METHODS = ("LeJEPA", "whitening", "spectral")
SLOW = 0.95
WINDOW = SLOW**2
KEPT, LOST = 0.9, 0.5

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


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, every = SCALES[scale], []
    for fast in plan.fast:
        world = LatentWorld(OrnsteinUhlenbeck(dim=2, rho=(SLOW, fast)), SinusoidalShear())
        for s in range(seed, seed + plan.seeds):
            recipe = recipe_for(scale, world, steps=plan.steps, seed=s)
            white = replace(recipe, objective=CovarianceConfig())
            where = {"fast": fast, "seed": s}
            every += [
                Trial({"method": "LeJEPA"} | where, run_trained, {"recipe": to_plain(recipe)}),
                Trial({"method": "whitening"} | where, run_trained, {"recipe": to_plain(white)}),
                Trial({"method": "spectral"} | where, run_spectral, {"recipe": to_plain(recipe), "pairs": plan.pairs}),
            ]
    return every


def run_trained(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    return train_and_measure(settings["recipe"], folder, 20_000, lambda recipe, _, s: _measured(s.h, s.z, recipe.seed))


def run_spectral(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    recipe = from_plain(Recipe, settings["recipe"])
    encoder = fit_spectral(recipe, settings["pairs"])
    x, z = fresh_observations(recipe, 20_000)
    return {"status": "finished", "verdicts": _measured(encoder.apply(x), z, recipe.seed)}


def _measured(h: np.ndarray, z: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """R² of the slow state (0), the fast state (1), and the slow state's second harmonic (2)."""
    targets = np.column_stack([z, (np.square(z[:, 0]) - 1) / np.sqrt(2)])
    return as_verdicts(r2_of_each_state(h, targets, seed), "held-out R² by state")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan, outcomes = SCALES[scale], []
    means = {
        (m, f, i): mean_and_range(select(results, method=m, fast=f), f"r2_{i}")
        for m in METHODS
        for f in plan.fast
        for i in range(3)
    }
    for method in METHODS:
        inside = [means[method, f, 1].value for f in plan.fast if f > WINDOW]
        outside = [means[method, f, 1].value for f in plan.fast if f < WINDOW]
        outcomes += [min(inside) >= KEPT, max(outside) <= LOST]
    return Finding(
        "holds" if all(outcomes) else "holds in part" if any(outcomes) else "does not hold",
        f"Slow rate {SLOW}, so the window ends at {WINDOW:.4f}. R² of the fast state, inside and outside: "
        + "; ".join(
            f"{method} {' and '.join(_span(means, method, plan.fast, inside=inside) for inside in (True, False))}"
            for method in METHODS
        )
        + f" (asked for: ≥ {KEPT} and ≤ {LOST}).",
        short=f"LeJEPA outside: R² {_span(means, 'LeJEPA', plan.fast, inside=False)}",
        verdicts=tuple(_verdict(means, method, plan.fast) for method in METHODS),
        figures=(_figure(means, plan.fast),),
        tables=(_table(means, plan.fast),),
    )


Means = dict[tuple[str, float, int], Estimate]


def _span(means: Means, method: str, fast: Sequence[float], *, inside: bool) -> str:
    values = [means[method, f, 1].value for f in fast if (f > WINDOW) == inside]
    return f"{min(values):.3f} to {max(values):.3f}"


def _verdict(means: Means, method: str, fast: Sequence[float]) -> Verdict:
    nearest = max(f for f in fast if f < WINDOW)
    return Verdict.judge(
        f"lost_outside_{method.lower()}",
        means[method, nearest, 1],
        direction="lower",
        threshold=LOST,
        good=f"Just outside the window (ρ {nearest}) the fast state is lost, at every seed (limits: the extremes).",
        bad=f"Just outside the window (ρ {nearest}) the fast state is not lost at every seed (limits: the extremes).",
    )


def _figure(means: Means, fast: Sequence[float]) -> dict[str, Any]:
    names = ("slow state", "fast state", "second harmonic of the slow state")
    panels = [
        {
            "title": method,
            "series": [curve(name, fast, [means[method, f, i] for f in fast]) for i, name in enumerate(names)]
            + [{"name": "window ρ_max²", "x": [WINDOW, WINDOW], "y": [0.0, 1.0], "dash": True}],
        }
        for method in METHODS
    ]
    return {
        "kind": "curves",
        "title": f"What two latents hold (slow rate {SLOW})",
        "x_label": "ρ of the fast state",
        "y_label": "held-out R²",
        "panels": panels,
    }


def _table(means: Means, fast: Sequence[float]) -> dict[str, Any]:
    rows = [
        [m, f, "inside" if f > WINDOW else "outside", *(cell(means[m, f, i]) for i in range(3))]
        for m in METHODS
        for f in fast
    ]
    columns = ["method", "ρ fast", "window", "R² slow state", "R² fast state", "R² harmonic of the slow"]
    return {"title": "Means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("anisotropic", "Rates that leave the window", CLAIM, trials, conclude)
