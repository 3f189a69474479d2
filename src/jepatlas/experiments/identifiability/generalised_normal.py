"""Theorem 2 by experiment: is the Gaussian the one world that is recovered linearly? Generalised normals on the spiral.

p(z) ∝ exp(−|z/s|^α) with unit variance, moving in two ways: the study's additive noise, which leaves the density unless
α = 2, and a Gaussian copula, which keeps it (`worlds/generalised_normal.py`). In both theory predicts a shared monotone
warp w of each coordinate, and so a linear R² of Corr(w(z), z)². Pairs are siblings, as in the study.

R² is of fresh states of the world itself. The study's code scores this sweep on an even grid over [−3, 3]² instead,
which for light tails lies mostly where the encoder has never been: for α = 32 nearly all states are within ±2.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate, Verdict
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale
from jepatlas.experiments.engine.latent_trials import STUDIED
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_interval, mean_and_range, select
from jepatlas.experiments.identifiability.generalised_normal_runs import GAUSSIAN, SAMPLERS, SCALES, trials
from jepatlas.identifiability import sturm_liouville_generalised_normal
from jepatlas.worlds.normal_scores import hermite_variances

__all__ = ["EXPERIMENT"]

CLAIM = Claim(
    statement="Linear recovery peaks at the Gaussian: it falls for heavier and for lighter tails.",
    source="When Does LeJEPA Learn a World Model?, Theorem 2 and the generalised-normal sweep",
    proven="that an affine first eigenfunction implies a Gaussian, for stationary additive noise; not how far recovery "
    "falls elsewhere",
    assumed="that an affine score implies a Gaussian density is an axiom in the Lean proof; heavy tails (α ≤ 1) have a "
    "continuous spectrum, for which the argument has no eigenfunction",
    measured="R² at α = 1/8 … 32: SIGReg .019 .747 .955 .978 .983 .941 .765 .608 .545; VICReg .035 .001 .172 .499 .992 "
    ".935 .697 .500 .442; InfoNCE .137 .839 .987 .999 .999 .979 .778 .531 .659 (additive noise, which is not "
    "stationary; scored on a grid over [−3, 3]², whatever the law)",
)


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    """A curve peaks at the Gaussian where its mean over seeds is highest at α = 2 and its intervals at both ends lie
    below the one there. It holds where all six curves do, and not where none does."""
    alphas = SCALES[scale].alphas
    curves = {key: _over_alphas(results, *key, alphas, "r2") for key in product(SAMPLERS, STUDIED)}
    peaks = [key for key in curves if _peaks(results, *key, alphas, "r2")]
    on_grid = {name: _over_alphas(results, "additive", name, alphas, "r2_grid") for name in STUDIED}
    grid_peaks = [name for name in on_grid if _peaks(results, "additive", name, alphas, "r2_grid")]
    additive, copula = _predicted(alphas)
    return Finding(
        "holds" if len(peaks) == len(curves) else "holds in part" if peaks else "does not hold",
        f"Scored on states of the world, {len(peaks)} of {len(curves)} curves peak at the Gaussian"
        f"{_named(peaks)}. At α = {alphas[-1]:g} R² is {_listed(curves, 'additive')} with additive noise, where the "
        f"eigenfunction predicts {additive[-1]:.3f}, and {_listed(curves, 'copula')} with the copula (predicted: "
        f"{copula[-1]:.3f}); at α = {alphas[0]:g} it is {_listed(curves, 'additive', 0)} and "
        f"{_listed(curves, 'copula', 0)}. On the study's grid over [−3, 3]² {len(grid_peaks)} of {len(on_grid)} "
        f"additive curves peak, and at α = {alphas[-1]:g} R² is "
        f"{', '.join(f'{name} {found[-1].value:.3f}' for name, found in on_grid.items())}: a fall "
        "there that the states do not show is extrapolation. Undoing a shared warp adds at most "
        f"{np.nanmax([result.value('gain') for result in results]):.3f} to the R² of any run.",
        short=f"{len(peaks)} of {len(curves)} curves peak at the Gaussian",
        verdicts=tuple(_verdict(sampler, name, alphas, found) for (sampler, name), found in curves.items()),
        figures=(_figure(results, alphas),),
        tables=(_table(results, alphas),),
    )


def _over_alphas(
    results: Sequence[Result], sampler: str, objective: str, alphas: Sequence[float], name: str
) -> list[Estimate]:
    return [mean_and_range(select(results, objective=objective, **place), name) for place in _places(sampler, alphas)]


def _places(sampler: str, alphas: Sequence[float]) -> list[dict[str, Any]]:
    return [{"alpha": a, "sampler": "gaussian" if a == GAUSSIAN else sampler} for a in alphas]


def _peaks(results: Sequence[Result], sampler: str, objective: str, alphas: Sequence[float], name: str) -> bool:
    found = [select(results, objective=objective, **place) for place in _places(sampler, alphas)]
    estimates = [mean_and_interval(runs, name) for runs in found]
    top = estimates[alphas.index(GAUSSIAN)]
    highest = all(np.nan_to_num(estimate.value, nan=-np.inf) <= top.value for estimate in estimates)
    return highest and all(e.high < top.low for e in (estimates[0], estimates[-1]) if e is not top)


def _predicted(alphas: Sequence[float]) -> tuple[list[float], list[float]]:
    """Linear R² of the predicted warp, additive and copula."""
    additive = [sturm_liouville_generalised_normal(alpha, 1).affinity for alpha in alphas]
    copula = [1.0 if alpha == GAUSSIAN else dict(hermite_variances(alpha))[1] for alpha in alphas]
    return additive, copula


def _named(peaks: Sequence[tuple[str, str]]) -> str:
    return f" ({', '.join(f'{sampler} {name}' for sampler, name in peaks)})" if peaks else ""


def _listed(curves: dict[tuple[str, str], list[Estimate]], sampler: str, place: int = -1) -> str:
    return ", ".join(f"{name} {curves[sampler, name][place].value:.3f}" for name in STUDIED)


def _verdict(sampler: str, name: str, alphas: Sequence[float], estimates: Sequence[Estimate]) -> Verdict:
    top = estimates[alphas.index(GAUSSIAN)]
    others = [e.value for e, alpha in zip(estimates, alphas, strict=True) if alpha != GAUSSIAN]
    return Verdict.judge(
        f"r2_gaussian_{sampler}_{name}",
        top,
        direction="higher",
        null=float(np.nanmax(others)),
        good="R² at α = 2, mean over seeds (limits: the extremes); the null is the highest mean at any other α.",
    )


def _figure(results: Sequence[Result], alphas: Sequence[float]) -> dict[str, Any]:
    def lines(sampler: str, name: str) -> list[dict[str, Any]]:
        return [
            curve(objective, alphas, _over_alphas(results, sampler, objective, alphas, name)) for objective in STUDIED
        ]

    additive, copula = ({"name": "predicted", "x": list(alphas), "y": y, "dash": True} for y in _predicted(alphas))
    panels = [
        {"title": "additive noise (not stationary)", "series": [*lines("additive", "r2"), additive]},
        {"title": "Gaussian copula (stationary)", "series": [*lines("copula", "r2"), copula]},
        {"title": "copula, warp undone", "series": lines("copula", "r2_unwarped")},
        {"title": "additive, on the study's grid", "series": lines("additive", "r2_grid")},
    ]
    return {
        "kind": "curves",
        "title": "Recovery against the exponent α of the density",
        "x_label": "α (2: Gaussian)",
        "y_label": "held-out R²",
        "log_x": True,
        "panels": panels,
        "note": "Bands: the extremes over seeds.",
    }


def _table(results: Sequence[Result], alphas: Sequence[float]) -> dict[str, Any]:
    additive, copula = (dict(zip(alphas, values, strict=True)) for values in _predicted(alphas))
    predicted = {"additive": additive, "copula": copula, "gaussian": dict.fromkeys(alphas, 1.0)}
    columns = {
        "R²": "r2",
        "R², warp undone": "r2_unwarped",
        "warp against predicted": "agreement",
        "R² on the grid": "r2_grid",
    }
    rows = []
    for result in results:
        expected = predicted[result.at["sampler"]][result.at["alpha"]]
        rows.append(
            [
                *(result.at[name] for name in ("sampler", "alpha", "objective", "seed")),
                result.status,
                "–" if np.isnan(expected) else f"{expected:.3f}",
                *(cell(result.estimate(name)) for name in columns.values()),
            ]
        )
    return {
        "title": "All runs",
        "columns": ["sampler", "α", "objective", "seed", "status", "R² predicted", *columns],
        "rows": rows,
    }


EXPERIMENT = Experiment("generalised-normal", "Worlds that are not Gaussian", CLAIM, trials, conclude)
