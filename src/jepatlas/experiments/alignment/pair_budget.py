"""Number of pairs that a map needs: least squares, ridge and Procrustes over the published budgets.

A general W has d² parameters and needs several times d pairs. Between identified charts W is orthogonal, with
d(d−1)/2 angles, and each pair gives d equations, so about d pairs suffice. If the charts are not identified, this
prior is wrong for any number of pairs. Maps are scored on other pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap, ProcrustesMap, RidgeMap
from jepatlas.core.figures import CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.latent_pairs import add_noise, paired_recipes, random_chart, train_pair
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, count_met, exact_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import curve, finished_only, grouped, mean_and_range, mean_cells

__all__ = ["EXPERIMENT", "METHODS", "budgets", "run_agents", "run_linear"]

PLAIN = "least squares"
METHODS = {PLAIN: LeastSquaresMap, "ridge": RidgeMap, "Procrustes": ProcrustesMap}
NEAR = 0.01  # of R²: so close to the best counts as enough pairs
FEW = 2  # pairs for each dimension
WORSE = 10.0  # growth of κ(W) that counts as ill-conditioned
NOISE = 0.1
CONDITION = 10.0  # of charts that are not identified
TEST = 5000  # rows that R² is scored on
IDENTIFIED = ("agents", "rotated")
CHARTS = {"agents": "LeJEPA agents", "rotated": "h = Qz + noise", "general": f"h = Az + noise, κ(A) = {CONDITION:g}"}

CLAIM = Claim(
    statement="More pairs give a better map, and with few of them W is ill-conditioned. Between identified charts, "
    "where W is orthogonal, about as many pairs as dimensions suffice.",
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
    every = []
    for at in grid(charts=["agents"], dim=[plan.agents_dim], seed=seeds):
        recipes = paired_recipes(scale, plan.agents_dim, plan.steps, at["seed"])
        every.append(Trial(at, run_agents, {"recipes": recipes, "pairs": plan.pairs, "seed": at["seed"]}))
    for at in grid(charts=("rotated", "general"), dim=plan.dims, seed=seeds):
        condition = 1.0 if at["charts"] == "rotated" else CONDITION
        settings = {"condition": condition, "dim": at["dim"], "pairs": plan.pairs, "seed": at["seed"]}
        every.append(Trial(at, run_linear, settings))
    return every


def budgets(dim: int, published: Sequence[int]) -> list[int]:
    """The published budgets, the fewest pairs that determine a rotation and a mean, and twice the dimensions.

    >>> budgets(64, (50, 100, 500))
    [50, 65, 100, 128, 500]
    """
    return sorted({dim + 1, FEW * dim, *published})


def run_agents(settings: Plain, folder: str) -> Plain:
    record, pair = train_pair(settings["recipes"], folder, max(settings["pairs"]) + TEST, settings["seed"])
    return record if pair is None else record | {"verdicts": _scores(pair.a, pair.b, settings["pairs"])}


def run_linear(settings: Plain, folder: str) -> Plain:
    del folder
    dim = settings["dim"]
    rng = numpy_generator(settings["seed"], "charts", dim)
    charts = [random_chart(dim, settings["condition"], rng) for _ in range(2)]
    z = rng.standard_normal((max(settings["pairs"]) + TEST, dim))
    a, b = (add_noise(z @ chart.T, NOISE, chart, rng) for chart in charts)
    return {"status": "finished", "verdicts": _scores(a, b, settings["pairs"])}


def _scores(a: np.ndarray, b: np.ndarray, pairs: Sequence[int]) -> list[Plain]:
    """R² on the last rows and κ(W), for maps fitted on the first n rows."""
    found: dict[str, float] = {}
    for n, (name, method) in product(budgets(a.shape[1], pairs), METHODS.items()):
        fitted = method().fit(a[:n], b[:n])
        found[f"r2_{name}_{n}"] = float(fitted.score(a[-TEST:], b[-TEST:]))
        found[f"kappa_{name}_{n}"] = fitted.conditioning_.condition
    return exact_verdicts(found, TEST, "on held-out pairs")


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    plan = SCALES[scale]
    groups = grouped(results, "charts", "dim")
    procrustes = {key: _needed(runs, "Procrustes", plan) for key, runs in groups.items() if key[0] in IDENTIFIED}
    few = [needed <= FEW * dim for (_, dim), needed in procrustes.items()]
    better = []
    ill = []
    for r in finished_only(results):
        fewest, *_, most = budgets(r.at["dim"], plan.pairs)
        better.append(r.value(f"r2_{PLAIN}_{fewest}") < r.value(f"r2_{PLAIN}_{most}"))
        ill.append(r.value(f"kappa_{PLAIN}_{fewest}") >= WORSE * r.value(f"kappa_{PLAIN}_{most}"))
    criteria = (
        Criterion.for_all(f"kinds of identified charts with at most {FEW}d pairs needed", few),
        Criterion(
            f"from fewest to most pairs: R² grows; κ(W) falls {WORSE:g} times",
            f"{count_met(better)}; {count_met(ill)}",
            "all",
            all(better) and all(ill),
        ),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"At most {FEW}d pairs suffice for {count_met(few)} kinds of identified charts; κ(W) falls with more "
        f"pairs in {count_met(ill)} runs.",
        criteria=criteria,
        verdicts=tuple(_verdict(key, needed, len(groups[key])) for key, needed in procrustes.items()),
        figures=(_figure(groups, plan),),
        tables=(_table(groups, plan), _needed_table(groups, plan)),
    )


def _needed(runs: Sequence[Result], name: str, plan: Plan) -> float:
    """Pairs until the mean R² is within NEAR of the best of any method; infinite if no budget suffices."""
    pairs = budgets(runs[0].at["dim"], plan.pairs)
    best = max(mean_and_range(runs, f"r2_{method}_{n}").value for method in METHODS for n in pairs)
    return next((n for n in pairs if mean_and_range(runs, f"r2_{name}_{n}").value >= best - NEAR), np.inf)


def _needed_table(groups: Groups, plan: Plan) -> Table:
    rows = []
    for (charts, dim), runs in groups.items():
        counts = [_needed(runs, name, plan) for name in METHODS]
        rows.append([CHARTS[charts], dim, *(f"{n:,}" if np.isfinite(n) else "never" for n in counts)])
    return Table(f"Pairs until R² is within {NEAR} of the best of any method", ["charts", "d", *METHODS], rows)


def _verdict(key: tuple[Any, ...], needed: float, seeds: int) -> Verdict:
    return Verdict.judge(
        f"pairs_{key[0]}_{key[1]}",
        Estimate.exact(needed, seeds),
        direction="lower",
        threshold=float(FEW * key[1]),
        good="Between identified charts about as many pairs as dimensions suffice.",
        bad="Between these charts a rotation needs more pairs.",
    )


def _figure(groups: Groups, plan: Plan) -> Curves:
    panels = []
    for (charts, dim), runs in groups.items():
        pairs = budgets(dim, plan.pairs)
        series = []
        for name in METHODS:
            scores = [_clipped(mean_and_range(runs, f"r2_{name}_{n}")) for n in pairs]
            series.append(curve(name, pairs, scores))
        panels.append(CurvePanel(series, f"{CHARTS[charts]}, d = {dim}"))
    return Curves(
        title="Held-out R² against the number of pairs",
        x_label="pairs",
        log_x=True,
        y_label="held-out R²",
        panels=panels,
        note="Negative R² is drawn as 0.",
    )


def _clipped(found: Estimate) -> Estimate:
    return Estimate(max(found.value, 0.0), max(found.low, 0.0), max(found.high, 0.0), found.n)


def _table(groups: Groups, plan: Plan) -> Table:
    rows = []
    for (charts, dim), runs in groups.items():
        for n in budgets(dim, plan.pairs):
            scores = mean_cells(runs, [f"r2_{name}_{n}" for name in METHODS])
            kappa = np.median([r.value(f"kappa_{PLAIN}_{n}") for r in runs])
            rows.append([CHARTS[charts], dim, f"{n:,}", *scores, f"{kappa:.3g}"])
    columns = ["charts", "d", "pairs", *(f"R², {name}" for name in METHODS), "κ(W), least squares (median)"]
    return Table("Held-out R², means over seeds [range]", columns, rows)


EXPERIMENT = Experiment("pair-budget", "How many pairs a map needs", CLAIM, trials, conclude)
