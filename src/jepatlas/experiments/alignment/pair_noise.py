"""Mismatched pairs: what they do to a map, with and without the robust fit; all maps are scored on clean pairs.

Where a share ε of the y is dealt from other pairs, least squares tends to (1 − ε)W: it shrinks, as a whole, and

    R² on clean pairs = (1 − ε²) R²₀        κ((1 − ε)W) = κ(W)

so with many pairs mismatches cost little R² and no conditioning. With few they act as so much more noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap, RobustMap
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.alignment.agents import meet, two_recipes
from jepatlas.experiments.alignment.charts import noisy, random_chart
from jepatlas.experiments.engine.experiment import Claim, Experiment, Finding, Result, Scale, Trial, as_verdicts
from jepatlas.experiments.engine.seed_tables import (
    cell,
    curve,
    geometric_mean_and_interval,
    grouped,
    mean_and_interval,
    mean_and_range,
)

__all__ = ["EXPERIMENT", "mismatch", "run_agents", "run_linear"]

SHARES = (0.0, 0.1, 0.2, 0.3)
PUBLISHED = {0.0: (0.891, 1.68), 0.1: (0.814, 14.375), 0.3: (0.692, 138.42)}  # R² and κ(W)
METHODS = {"plain": LeastSquaresMap, "robust": RobustMap}
GROWTH, NEAR = 10.0, 0.01
CONDITION, NOISE = 1.68, 0.35  # so that without mismatches κ(W) and R² = 1/(1 + σ²) = .891 are the published ones
TEST = 5000

CLAIM = Claim(
    statement="Mismatching a share of the pairs lowers R² and drives up κ(W), tenfold and more.",
    source="Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models, Table 4 (smallNORB, "
    "d = 384)",
    measured="R² .891, .814, .692 and κ(W) 1.68, 14.4, 138 at 0, .1 and .3 mismatched",
)

Groups = dict[tuple[Any, ...], list[Result]]  # by kind of charts, dimension and number of pairs


@dataclass(frozen=True)
class Plan:
    dim: int  # of the linear charts
    pairs: tuple[int, ...]  # for these; agents have the most of them
    agents_dim: int
    steps: int
    seeds: int


SCALES = {
    "tiny": Plan(8, (60, 300), 2, 40, 1),
    "small": Plan(64, (200, 5000), 4, 3000, 3),
    "paper": Plan(384, (1000, 20_000), 4, 20_000, 5),
}


def trials(scale: Scale, seed: int) -> list[Trial]:
    plan, seeds = SCALES[scale], range(seed, seed + SCALES[scale].seeds)
    trained = [
        Trial(
            {"charts": "agents", "dim": plan.agents_dim, "pairs": plan.pairs[-1], "seed": s},
            run_agents,
            {"recipes": two_recipes(scale, plan.agents_dim, plan.steps, s), "pairs": plan.pairs[-1], "seed": s},
        )
        for s in seeds
    ]
    linear = [
        Trial(
            {"charts": "linear", "dim": plan.dim, "pairs": pairs, "seed": s},
            run_linear,
            {"dim": plan.dim, "pairs": pairs, "seed": s},
        )
        for pairs, s in product(plan.pairs, seeds)
    ]
    return trained + linear


def run_agents(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    record, met = meet(settings["recipes"], folder, settings["pairs"] + TEST, settings["seed"])
    return (
        record if met is None else record | {"verdicts": _stressed(met.a, met.b, settings["pairs"], settings["seed"])}
    )


def run_linear(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    """One chart is a rotation, the other has the published κ; noise is in the target."""
    del folder
    rng = numpy_generator(settings["seed"], "charts", settings["dim"])
    first, second = (random_chart(settings["dim"], condition, rng) for condition in (1.0, CONDITION))
    z = rng.standard_normal((settings["pairs"] + TEST, settings["dim"]))
    a, b = z @ first.T, noisy(z @ second.T, NOISE, second, rng)
    return {"status": "finished", "verdicts": _stressed(a, b, settings["pairs"], settings["seed"])}


def _stressed(a: np.ndarray, b: np.ndarray, pairs: int, seed: int) -> list[dict[str, Any]]:
    found = dict[str, float]()
    for share in SHARES:
        dealt = mismatch(pairs, share, numpy_generator(seed, "mismatch"))
        for name, method in METHODS.items():
            fitted = method().fit(a[:pairs], b[dealt])
            found |= {
                f"r2_{name}_{share:g}": float(fitted.score(a[pairs:], b[pairs:])),
                f"kappa_{name}_{share:g}": fitted.conditioning_.condition,
            }
        found |= {f"lost_{name}_{share:g}": found["r2_plain_0"] - found[f"r2_{name}_{share:g}"] for name in METHODS}
        found[f"growth_{share:g}"] = found[f"kappa_plain_{share:g}"] / found["kappa_plain_0"]
    return as_verdicts({name: Estimate(value, value, value, TEST) for name, value in found.items()}, "on clean pairs")


def mismatch(pairs: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """An order of the rows in which a share of them, drawn at random, is moved on in a circle; none of it stays.

    >>> order = mismatch(10, 0.3, np.random.default_rng(0))
    >>> int((order != np.arange(10)).sum()), sorted(order.tolist()) == list(range(10))
    (3, True)
    """
    order, moved = np.arange(pairs), rng.permutation(pairs)[: round(share * pairs)]
    order[moved] = np.roll(moved, 1)
    return order


def conclude(results: Sequence[Result], scale: Scale) -> Finding:
    groups, most = grouped(results, "charts", "dim", "pairs"), f"{SHARES[-1]:g}"
    lost, robust = (
        {key: mean_and_interval(runs, f"{name}_{most}") for key, runs in groups.items()}
        for name in ("lost_plain", "lost_robust")
    )
    grown = {key: geometric_mean_and_interval(runs, f"growth_{most}") for key, runs in groups.items()}
    rules = [all(found.low > 0 for found in lost.values()), all(found.low >= GROWTH for found in grown.values())]
    return Finding(
        "holds" if all(rules) else "holds in part" if any(rules) else "does not hold",
        f"With {most} of the pairs mismatched, R² of least squares on clean pairs falls by, and κ(W) is multiplied by: "
        + "; ".join(f"{_named(key)}: {cell(lost[key])} and {cell(grown[key], 2)}" for key in groups)
        + f" (published: {PUBLISHED[0.0][0] - PUBLISHED[SHARES[-1]][0]:.3f} and "
        f"{PUBLISHED[SHARES[-1]][1] / PUBLISHED[0.0][1]:.0f}). The robust fit falls behind the clean one by "
        + "; ".join(f"{_named(key)}: {cell(found)}" for key, found in robust.items())
        + ".",
        short=f"{most} mismatched: R² falls by {_span(lost, '.2f')}, κ(W) × {_span(grown, '.3g')}",
        verdicts=tuple(_verdict(key, found) for key, found in robust.items()),
        figures=(_figure(groups),),
        tables=(_table(groups),),
    )


def _span(found: Mapping[tuple[Any, ...], Estimate], digits: str) -> str:
    """The least and the most of some means."""
    values = [estimate.value for estimate in found.values()]
    return f"{min(values):{digits}}–{max(values):{digits}}"


def _named(key: tuple[Any, ...]) -> str:
    return f"{'LeJEPA agents' if key[0] == 'agents' else 'linear charts'}, d = {key[1]}, {key[2]:,} pairs"


def _verdict(key: tuple[Any, ...], lost: Estimate) -> Verdict:
    return Verdict.judge(
        f"robust_{key[0]}_{key[2]}",
        lost,
        direction="lower",
        threshold=NEAR,
        good=f"{_named(key)}: the robust fit is as good as if no pair were mismatched.",
        bad=f"{_named(key)}: mismatched pairs cost the robust fit more than {NEAR} of R².",
    )


def _figure(groups: Groups) -> dict[str, Any]:
    published = {"name": "published", "x": list(PUBLISHED), "dash": True}
    scores = [
        {
            "title": f"{_named(key)}: R²",
            "series": [
                *(
                    curve(name, SHARES, [mean_and_range(runs, f"r2_{name}_{share:g}") for share in SHARES])
                    for name in METHODS
                ),
                published | {"y": [r2 for r2, _ in PUBLISHED.values()]},
            ],
        }
        for key, runs in groups.items()
    ]
    kappas = [
        {
            "title": f"{_named(key)}: κ(W)",
            "log_y": True,
            "series": [
                *(
                    {
                        "name": name,
                        "x": list(SHARES),
                        "y": [mean_and_range(runs, f"kappa_{name}_{share:g}").value for share in SHARES],
                    }
                    for name in METHODS
                ),
                published | {"y": [kappa for _, kappa in PUBLISHED.values()]},
            ],
        }
        for key, runs in groups.items()
    ]
    return {
        "kind": "curves",
        "title": "R² on clean pairs, and κ(W), with mismatched pairs",
        "panels": scores + kappas,
        "x_label": "share mismatched",
        "y_label": "",
    }


def _table(groups: Groups) -> dict[str, Any]:
    rows = [
        [
            _named(key),
            f"{share:g}",
            *(
                cell(mean_and_range(runs, f"{measure}_{name}_{share:g}"), digits)
                for name in METHODS
                for measure, digits in (("r2", 3), ("kappa", 2))
            ),
            *(f"{number:g}" for number in PUBLISHED.get(share, ())),
        ]
        for key, runs in groups.items()
        for share in SHARES
    ]
    rows = [row + ["–"] * (8 - len(row)) for row in rows]
    columns = [
        "charts",
        "mismatched",
        "R², plain",
        "κ, plain",
        "R², robust",
        "κ, robust",
        "R², published",
        "κ, published",
    ]
    return {
        "title": "R² on clean held-out pairs and κ(W), means over seeds [extremes]",
        "columns": columns,
        "rows": rows,
    }


EXPERIMENT = Experiment("pair-noise", "Mismatched pairs", CLAIM, trials, conclude)
