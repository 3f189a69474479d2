"""How many pairs a map needs: least squares, ridge and Procrustes over the published budgets, scored on other pairs.

A general W has d² free numbers and needs several times d pairs. Between identified charts W is orthogonal, and each
pair says d things about its d(d−1)/2 angles: about d pairs are enough. Where charts are not identified, that prior is
wrong, and no number of pairs mends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap, ProcrustesMap, RidgeMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.agents import meet, two_recipes
from jepatlas.experiments.alignment.charts import noisy, random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.seed_tables import cell, curve, grouped, mean_and_range

__all__ = ["EXPERIMENT", "budgets", "run_agents", "run_linear"]

PLAIN = "least squares"
METHODS = {PLAIN: LeastSquaresMap, "ridge": RidgeMap, "Procrustes": ProcrustesMap}
NEAR, FEW, WORSE = 0.01, 2, 10.0
NOISE, CONDITION = 0.1, 10.0
TEST = 5000
IDENTIFIED = ("agents", "rotated")
CHARTS = {"agents": "LeJEPA agents", "rotated": "h = Qz + noise", "general": f"h = Az + noise, κ(A) = {CONDITION:g}"}

CLAIM = Claim(
    statement="More pairs give a better map, and with few of them W is ill-conditioned; between identified charts, "
    "where W is orthogonal, about as many pairs as dimensions are enough.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, appendix B.1 (50 to "
    "20,000 pairs, d = 384). Its last part is our reading of W = Q₂Q₁ᵀ in When Does LeJEPA Learn a World Model?",
)

Groups = dict[tuple[Any, ...], list[Result]]  # by kind of charts and dimension


@dataclass(frozen=True)
class Plan:
    dims: tuple[int, ...]  # of the linear charts
    agents_dim: int
    steps: int
    seeds: int
    pairs: tuple[int, ...]


PUBLISHED = (50, 100, 500, 1000, 5000, 20_000)
SCALES = {
    "tiny": Plan((8,), 2, 40, 1, (50, 500)),
    "small": Plan((64,), 4, 3000, 3, PUBLISHED),
    "paper": Plan((64, 384), 4, 20_000, 5, PUBLISHED),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    seeds = range(seed, seed + plan.seeds)
    trained = [
        Trial(
            {"charts": "agents", "dim": plan.agents_dim, "seed": s},
            run_agents,
            {"recipes": two_recipes(scale, plan.agents_dim, plan.steps, s), "pairs": plan.pairs, "seed": s},
        )
        for s in seeds
    ]
    linear = [
        Trial(
            {"charts": charts, "dim": dim, "seed": s},
            run_linear,
            {"condition": 1.0 if charts == "rotated" else CONDITION, "dim": dim, "pairs": plan.pairs, "seed": s},
        )
        for charts, dim, s in product(("rotated", "general"), plan.dims, seeds)
    ]
    return trained + linear


def budgets(dim: int, published: Sequence[int]) -> list[int]:
    """The published ones, as many as it takes to fix a rotation about an unknown mean, and twice the dimensions.

    >>> budgets(64, (50, 100, 500))
    [50, 65, 100, 128, 500]
    """
    return sorted({dim + 1, FEW * dim, *published})


def run_agents(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    record, met = meet(settings["recipes"], folder, max(settings["pairs"]) + TEST, settings["seed"])
    return record if met is None else record | {"verdicts": _curves(met.a, met.b, settings["pairs"])}


def run_linear(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    del folder
    dim, rng = settings["dim"], numpy_generator(settings["seed"], "charts", settings["dim"])
    charts = [random_chart(dim, settings["condition"], rng) for _ in range(2)]
    z = rng.standard_normal((max(settings["pairs"]) + TEST, dim))
    a, b = (noisy(z @ chart.T, NOISE, chart, rng) for chart in charts)
    return {"status": "finished", "verdicts": _curves(a, b, settings["pairs"])}


def _curves(a: np.ndarray, b: np.ndarray, pairs: Sequence[int]) -> list[dict[str, Any]]:
    """R² on the last rows, and κ(W), for maps from the first rows: 50, then these and more."""
    found = dict[str, float]()
    for n, (name, method) in product(budgets(a.shape[1], pairs), METHODS.items()):
        fitted = method().fit(a[:n], b[:n])
        found |= {
            f"r2_{name}_{n}": float(fitted.score(a[-TEST:], b[-TEST:])),
            f"kappa_{name}_{n}": fitted.conditioning_.condition,
        }
    return as_verdicts(
        {name: Estimate(value, value, value, TEST) for name, value in found.items()}, "on held-out pairs"
    )


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan, groups = SCALES[scale], grouped(results, "charts", "dim")
    needed = {
        (key, name): _needed(runs, name, budgets(key[1], plan.pairs))
        for key, runs in groups.items()
        for name in METHODS
    }
    few = [needed[key, "Procrustes"] <= FEW * key[1] for key in groups if key[0] in IDENTIFIED]
    ends = [(r, [budgets(r.at["dim"], plan.pairs)[i] for i in (0, -1)]) for r in results if r.status == "finished"]
    better = [r.value(f"r2_{PLAIN}_{low}") < r.value(f"r2_{PLAIN}_{high}") for r, (low, high) in ends]
    ill = [r.value(f"kappa_{PLAIN}_{low}") >= WORSE * r.value(f"kappa_{PLAIN}_{high}") for r, (low, high) in ends]
    rules = [all(few), all(better) and all(ill)]
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"Pairs until the mean held-out R² is within {NEAR} of the best that any method comes to: "
        + "; ".join(_listed(key, needed) for key in groups)
        + f". With Procrustes at most {FEW}d are enough in {sum(few)} of {len(few)} kinds of identified charts. From "
        f"the fewest pairs to the most, R² of least squares grows in {sum(better)} of {len(better)} runs, and κ(W) "
        f"falls at least {WORSE:g} times, or from infinity, in {sum(ill)}.",
        short=f"≤ {FEW}d pairs enough in {sum(few)} of {len(few)}; κ(W) falls in {sum(ill)} of {len(ill)}",
        verdicts=tuple(
            _verdict(key, needed[key, "Procrustes"], len(groups[key])) for key in groups if key[0] in IDENTIFIED
        ),
        figures=(_figure(groups, plan),),
        tables=(_table(groups, plan),),
    )


def _needed(runs: Sequence[Result], name: str, pairs: Sequence[int]) -> float:
    """Infinite where the largest budget does not suffice."""
    best = max(mean_and_range(runs, f"r2_{method}_{n}").value for method in METHODS for n in pairs)
    return next((n for n in pairs if mean_and_range(runs, f"r2_{name}_{n}").value >= best - NEAR), np.inf)


def _listed(key: tuple[Any, ...], needed: dict[tuple[tuple[Any, ...], str], float]) -> str:
    counts = {name: needed[key, name] for name in METHODS}
    listed = (f"{name} {f'{n:,}' if np.isfinite(n) else 'never'}" for name, n in counts.items())
    return f"{CHARTS[key[0]]}, d = {key[1]}: {', '.join(listed)}"


def _verdict(key: tuple[Any, ...], needed: float, seeds: int) -> Verdict:
    return Verdict.judge(
        f"pairs_{key[0]}_{key[1]}",
        Estimate(needed, needed, needed, seeds),
        direction="lower",
        threshold=float(FEW * key[1]),
        good="Between identified charts about as many pairs as dimensions are enough.",
        bad="Between these charts a rotation takes more pairs than that.",
    )


def _figure(groups: Groups, plan: Plan) -> dict[str, Any]:
    panels = []
    for (charts, dim), runs in groups.items():
        pairs = budgets(dim, plan.pairs)
        series = [
            curve(name, pairs, [_shown(mean_and_range(runs, f"r2_{name}_{n}")) for n in pairs]) for name in METHODS
        ]
        panels.append({"title": f"{CHARTS[charts]}, d = {dim}", "series": series})
    return {
        "kind": "curves",
        "title": "Held-out R² against the number of pairs",
        "x_label": "pairs",
        "log_x": True,
        "y_label": "held-out R²",
        "panels": panels,
        "note": "Negative R² is drawn as 0.",
    }


def _shown(found: Estimate) -> Estimate:
    return Estimate(max(found.value, 0.0), max(found.low, 0.0), max(found.high, 0.0), found.n)


def _table(groups: Groups, plan: Plan) -> dict[str, Any]:
    rows = [
        [
            CHARTS[charts],
            dim,
            f"{n:,}",
            *(cell(mean_and_range(runs, f"r2_{name}_{n}")) for name in METHODS),
            f"{np.median([r.value(f'kappa_{PLAIN}_{n}') for r in runs]):.3g}",
        ]
        for (charts, dim), runs in groups.items()
        for n in budgets(dim, plan.pairs)
    ]
    columns = ["charts", "d", "pairs", *(f"R², {name}" for name in METHODS), "κ(W), least squares (median)"]
    return {"title": "Held-out R², means over seeds [extremes]", "columns": columns, "rows": rows}


EXPERIMENT = Experiment("pair-budget", "How many pairs a map needs", CLAIM, trials, conclude)
