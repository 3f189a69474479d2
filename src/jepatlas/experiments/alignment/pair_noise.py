"""Mismatched pairs and their effect on a map, with and without the robust fit. Maps are scored on clean pairs.

If a share ε of the y is taken from other pairs, least squares tends to (1 − ε)W: it shrinks as a whole, and

    R² on clean pairs = (1 − ε²) R²₀        κ((1 − ε)W) = κ(W)

so with many pairs mismatches cost little R² and do not affect conditioning. With few pairs they act as added noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap, RobustMap
from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.latent_pairs import add_noise, paired_recipes, random_chart, train_pair
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Plain, Result, Scale, Trial, grid
from jepatlas.experiments.engine.rules import Criterion, exact_verdicts, outcome_of_criteria
from jepatlas.experiments.engine.seed_tables import (
    cell,
    geometric_mean_and_interval,
    grouped,
    mean_and_interval,
    mean_and_range,
    mean_cells,
    mean_curve,
    span,
)

__all__ = ["EXPERIMENT", "SHARES", "mismatch", "run_agents", "run_linear"]

SHARES = (0.0, 0.1, 0.2, 0.3)
MOST = f"{SHARES[-1]:g}"
PUBLISHED = {0.0: (0.891, 1.68), 0.1: (0.814, 14.375), 0.3: (0.692, 138.42)}  # R² and κ(W)
METHODS = {"plain": LeastSquaresMap, "robust": RobustMap}
GROWTH = 10.0  # of κ(W), as claimed
NEAR = 0.01  # of R²: a loss up to this size counts as none
CONDITION = 1.68  # of one chart; without mismatches it is the published κ(W)
NOISE = 0.35  # without mismatches it gives the published R² = 1/(1 + σ²) = .891
TEST = 5000  # rows that R² is scored on

CLAIM = Claim(
    statement="Mismatching a share of the pairs lowers R² and increases κ(W) tenfold and more.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 4 (smallNORB, "
    "d = 384)",
    measured="R² .891, .814, .692 and κ(W) 1.68, 14.4, 138 at 0, .1 and .3 mismatched",
)

Groups = dict[tuple[Any, ...], list[Result]]  # by kind of charts, dimension and number of pairs


@dataclass(frozen=True)
class Plan:
    dim: int  # of the linear charts
    pairs: tuple[int, ...]  # of the linear charts; agents have the largest number
    agents_dim: int
    steps: int
    seeds: int


SCALES = {
    "tiny": Plan(8, (60, 300), 2, 40, 1),
    "small": Plan(64, (200, 5000), 4, 3000, 3),
    "paper": Plan(384, (1000, 20_000), 4, 20_000, 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan = SCALES[scale]
    seeds = range(seed, seed + plan.seeds)
    every = []
    for at in grid(charts=["agents"], dim=[plan.agents_dim], pairs=[plan.pairs[-1]], seed=seeds):
        recipes = paired_recipes(scale, plan.agents_dim, plan.steps, at["seed"])
        every.append(Trial(at, run_agents, {"recipes": recipes, "pairs": at["pairs"], "seed": at["seed"]}))
    for at in grid(charts=["linear"], dim=[plan.dim], pairs=plan.pairs, seed=seeds):
        every.append(Trial(at, run_linear, {name: at[name] for name in ("dim", "pairs", "seed")}))
    return every


def run_agents(settings: Plain, folder: str) -> Plain:
    pairs = settings["pairs"]
    seed = settings["seed"]
    record, pair = train_pair(settings["recipes"], folder, pairs + TEST, seed)
    return record if pair is None else record | {"verdicts": _scores(pair.a, pair.b, pairs, seed)}


def run_linear(settings: Plain, folder: str) -> Plain:
    """One chart is a rotation, the other has the published κ; noise is in the target."""
    del folder
    rng = numpy_generator(settings["seed"], "charts", settings["dim"])
    first, second = (random_chart(settings["dim"], condition, rng) for condition in (1.0, CONDITION))
    z = rng.standard_normal((settings["pairs"] + TEST, settings["dim"]))
    a = z @ first.T
    b = add_noise(z @ second.T, NOISE, second, rng)
    return {"status": "finished", "verdicts": _scores(a, b, settings["pairs"], settings["seed"])}


def _scores(a: np.ndarray, b: np.ndarray, pairs: int, seed: int) -> list[Plain]:
    found: dict[str, float] = {}
    for share in SHARES:
        partners = mismatch(pairs, share, numpy_generator(seed, "mismatch"))
        for name, method in METHODS.items():
            fitted = method().fit(a[:pairs], b[partners])
            found[f"r2_{name}_{share:g}"] = float(fitted.score(a[pairs:], b[pairs:]))
            found[f"kappa_{name}_{share:g}"] = fitted.conditioning_.condition
            found[f"lost_{name}_{share:g}"] = found["r2_plain_0"] - found[f"r2_{name}_{share:g}"]
        found[f"growth_{share:g}"] = found[f"kappa_plain_{share:g}"] / found["kappa_plain_0"]
    return exact_verdicts(found, TEST, "on clean pairs")


def mismatch(pairs: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """A permutation that moves a random share of the rows along one cycle and leaves the others in place.

    >>> order = mismatch(10, 0.3, np.random.default_rng(0))
    >>> int((order != np.arange(10)).sum()), sorted(order.tolist()) == list(range(10))
    (3, True)
    """
    order = np.arange(pairs)
    moved = rng.permutation(pairs)[: round(share * pairs)]
    order[moved] = np.roll(moved, 1)
    return order


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    del scale
    groups = grouped(results, "charts", "dim", "pairs")
    lost = {key: mean_and_interval(runs, f"lost_plain_{MOST}") for key, runs in groups.items()}
    robust = {key: mean_and_interval(runs, f"lost_robust_{MOST}") for key, runs in groups.items()}
    grown = {key: geometric_mean_and_interval(runs, f"growth_{MOST}") for key, runs in groups.items()}
    losses = [one.value for one in lost.values()]
    growths = [one.value for one in grown.values()]
    criteria = (
        Criterion("loss of R²", span(losses), "> 0 in all settings", all(one.low > 0 for one in lost.values())),
        Criterion(
            "growth of κ(W)",
            span(growths, ".3g"),
            f"≥ {GROWTH:g} in all settings",
            all(one.low >= GROWTH for one in grown.values()),
        ),
    )
    return Finding(
        outcome_of_criteria(criteria),
        f"With {MOST} of the pairs mismatched R² falls by {span(losses, '.2f')} and κ(W) grows "
        f"{span(growths, '.3g')} times.",
        criteria=criteria,
        verdicts=tuple(_verdict(key, found) for key, found in robust.items()),
        figures=(_figure(groups),),
        tables=(_table(groups), _loss_table(lost, grown, robust)),
    )


def _title(key: tuple[Any, ...]) -> str:
    return f"{'LeJEPA agents' if key[0] == 'agents' else 'linear charts'}, d = {key[1]}, {key[2]:,} pairs"


def _verdict(key: tuple[Any, ...], lost: Estimate) -> Verdict:
    return Verdict.judge(
        f"robust_{key[0]}_{key[2]}",
        lost,
        direction="lower",
        threshold=NEAR,
        good=f"{_title(key)}: the robust fit is as good as a fit on clean pairs.",
        bad=f"{_title(key)}: mismatched pairs cost the robust fit more than {NEAR} of R².",
    )


def _figure(groups: Groups) -> Curves:
    shares = list(PUBLISHED)
    published_r2 = Curve("published", shares, [r2 for r2, _ in PUBLISHED.values()], dash=True)
    published_kappa = Curve("published", shares, [kappa for _, kappa in PUBLISHED.values()], dash=True)
    scores = []
    kappas = []
    for key, runs in groups.items():
        r2s = [mean_curve(name, runs, {share: f"r2_{name}_{share:g}" for share in SHARES}) for name in METHODS]
        conditions = []
        for name in METHODS:
            means = [mean_and_range(runs, f"kappa_{name}_{share:g}").value for share in SHARES]
            conditions.append(Curve(name, list(SHARES), means))
        scores.append(CurvePanel([*r2s, published_r2], f"{_title(key)}: R²"))
        kappas.append(CurvePanel([*conditions, published_kappa], f"{_title(key)}: κ(W)", log_y=True))
    return Curves(
        title="R² on clean pairs, and κ(W), with mismatched pairs",
        panels=scores + kappas,
        x_label="share mismatched",
        y_label="",
    )


def _table(groups: Groups) -> Table:
    rows = []
    for key, runs in groups.items():
        for share in SHARES:
            cells = []
            for name in METHODS:
                cells += mean_cells(runs, [f"r2_{name}_{share:g}"])
                cells += mean_cells(runs, [f"kappa_{name}_{share:g}"], digits=2)
            published = [f"{number:g}" for number in PUBLISHED.get(share, ())] or ["–", "–"]
            rows.append([_title(key), f"{share:g}", *cells, *published])
    columns = ["charts", "mismatched", "R², plain", "κ, plain", "R², robust", "κ, robust", "R², published"]
    title = "R² on clean held-out pairs and κ(W), means over seeds [range]"
    return Table(title, [*columns, "κ, published"], rows)


def _loss_table(lost: Mapping[Any, Estimate], grown: Mapping[Any, Estimate], robust: Mapping[Any, Estimate]) -> Table:
    rows = [[_title(key), cell(lost[key]), cell(grown[key], 2), cell(robust[key])] for key in lost]
    columns = ["charts", "loss of R², plain", "growth of κ(W), plain", "loss of R², robust"]
    return Table(f"{MOST} of the pairs mismatched, mean over seeds [95% interval]", columns, rows)


EXPERIMENT = Experiment("pair-noise", "Mismatched pairs", CLAIM, trials, conclude)
