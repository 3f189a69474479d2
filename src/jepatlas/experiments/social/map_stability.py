"""Are maps between agents more stable if the objective asks for view-invariant prediction?

    instability = E‖W₁h − W₂h‖² / E‖Wh − mean‖²     over held-out states; W₁, W₂ fitted on disjoint parts of the objects

Parts are halves or quarters. The unit is the variance of the predictions of the map fitted on all pairs: in units of
the target (also in the table), a map that predicts nothing would be the most stable. Maps of different seeds cannot be
compared, because their latents differ; there, the variance of R² is compared, pooled over objectives, with the F
interval of the ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy  # its parts are loaded when they are used

from jepatlas.alignment import PairedLatents
from jepatlas.alignment.maps import RidgeMap
from jepatlas.core.figures import Bars, Table
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.core.stats import mean_interval
from jepatlas.experiments.engine.experiment import Finding, Result, Scale, Trial
from jepatlas.experiments.engine.rules import point_estimates
from jepatlas.experiments.engine.seed_tables import bars, mean_and_range, plain
from jepatlas.experiments.social.agent_pairs import groups_of_pair, pair_results, scored_rows, split_of
from jepatlas.experiments.social.decisions import (
    collapsed_seeds,
    decide,
    measured_groups,
    positive_verdicts,
    seed_differences,
)
from jepatlas.experiments.social.pair_measures import positive_scale, translate
from jepatlas.experiments.social.trained_agents import agent_trials

__all__ = [
    "PREDICTIVE",
    "judge",
    "measure_instability",
    "objectives",
    "ratio_of_variances",
    "stability_pairs",
    "trials",
]

PREDICTIVE = ("ijepa", "lejepa")
_OTHERS: dict[Scale, tuple[str, ...]] = {
    "tiny": ("mae",),
    "small": ("mae", "autoencoder", "simclr"),
    "paper": ("mae", "autoencoder", "simclr", "vicreg"),
}
PARTS = {2: "halves", 4: "quarters"}
DRAWS = 5


def objectives(scale: Scale) -> tuple[str, ...]:
    predictive = PREDICTIVE[:1] if scale == "tiny" else PREDICTIVE
    return (*predictive, *_OTHERS[scale])


def trials(scale: Scale, scene: str, seeds: range) -> list[Trial]:
    """Agents of `social-paradigms`, as far as it has them."""
    return [trial for name in objectives(scale) for trial in agent_trials(scale, scene, seeds, name)]


def stability_pairs(results: Sequence[Result], scale: Scale, rows: int) -> list[Result]:
    chosen = [result for result in results if result.at["objective"] in objectives(scale)]
    return pair_results(chosen, lambda pair: measure_instability(pair, rows))


def measure_instability(pair: PairedLatents, most: int) -> dict[str, Estimate]:
    """How much predictions differ between maps of disjoint parts, and scores of the map of all pairs."""
    a, b = pair.a.h, pair.b.h
    fit = split_of(pair).fit
    rows = scored_rows(pair, most)
    groups = groups_of_pair(pair)
    whole = translate(pair, a, b)
    scale = positive_scale(whole.fitted.map_.y_scale)
    scores = whole.scores(rows, rows)
    found = {name: scores[name] for name in ("r2", "dsc", "nos_10")}
    objects, object_of_row = np.unique(groups[fit], return_inverse=True)
    for parts in PARTS:
        draws = []
        for draw in range(DRAWS if len(objects) >= 2 * parts else 0):  # the penalty is chosen on held-out objects
            order = numpy_generator(draw, f"{parts} parts").permutation(len(objects))
            part_of = order[object_of_row] % parts
            predictions = []
            for part in range(parts):
                chosen = fit[part_of == part]
                fitted = RidgeMap(standardise=True).fit(a[chosen], b[chosen], groups=groups[chosen])
                predictions.append(fitted.transform(a[rows]) / scale)
            draws.append(2 * np.stack(predictions).var(0, ddof=1).sum())  # mean over all pairs of maps
        difference = float(np.mean(draws)) if draws else np.nan
        instability = difference / _total_variance(whole.predicted[rows])
        found[f"instability_{parts}"] = instability
        found[f"log_instability_{parts}"] = float(np.log(instability)) if instability > 0 else np.nan
        found[f"moved_{parts}"] = difference / _total_variance(whole.target[rows])
    return point_estimates(found, len(rows))


def _total_variance(values: np.ndarray) -> float:
    total = float(np.square(values - values.mean(0)).sum())
    return total if total > 0 else np.nan


def ratio_of_variances(above: Sequence[np.ndarray], below: Sequence[np.ndarray], among: int = 1) -> Estimate:
    """Logarithm of the ratio of two pooled variances, with the 95% F interval for normal values."""
    freedom = []
    pooled = []
    for side in (above, below):
        repeated = [values for values in side if len(values) > 1]
        count = sum(len(values) - 1 for values in repeated)
        freedom.append(count)
        pooled.append(sum(values.var(ddof=1) * (len(values) - 1) for values in repeated) / max(count, 1))
    if min(freedom) < 1 or min(pooled) <= 0:
        return Estimate(np.nan, -np.inf, np.inf, min(freedom))
    ratio = float(pooled[0] / pooled[1])
    low, high = (ratio / scipy.stats.f.ppf(level, *freedom) for level in (1 - 0.025 / among, 0.025 / among))
    return Estimate(float(np.log(ratio)), float(np.log(low)), float(np.log(high)), sum(freedom))


def judge(pairs: Sequence[Result]) -> Finding:
    """Maps of predictive objectives must significantly be steadier: from halves, from quarters, and R² over seeds.
    Objectives with a collapsed pair are excluded."""
    kinds, _ = measured_groups(pairs, "objective", "r2")
    alive = {name: runs for name, runs in kinds.items() if not collapsed_seeds(runs)}
    predictive = [runs for name, runs in alive.items() if name in PREDICTIVE]
    others = [runs for name, runs in alive.items() if name not in PREDICTIVE]
    among = len(PARTS) + 1
    found = {}
    for parts, title in PARTS.items():
        differences = seed_differences(_joined(others), _joined(predictive), f"log_instability_{parts}")
        found[f"steadier_{title}"] = mean_interval(differences, comparisons=among)
    found["steadier_seeds"] = ratio_of_variances(
        [_finite(runs, "r2") for runs in others], [_finite(runs, "r2") for runs in predictive], among=among
    )
    outcome = decide(list(found.values()))
    if outcome == "holds" and len(alive) < len(kinds):
        outcome = "holds in part"
    return Finding(
        outcome,
        f"View-invariant prediction has steadier maps: {outcome}.",
        verdicts=positive_verdicts(
            found,
            "Maps of predictive objectives are steadier.",
            "Maps of predictive objectives are not significantly steadier.",
        ),
        figures=(_figure(kinds),),
        tables=(_table(kinds, pairs),),
    )


def _joined(groups: Sequence[Sequence[Result]]) -> list[Result]:
    return [run for runs in groups for run in runs]


def _finite(runs: Sequence[Result], name: str) -> np.ndarray:
    values = np.array([run.value(name) for run in runs])
    return values[np.isfinite(values)]


def _figure(kinds: Mapping[str, Sequence[Result]]) -> Bars:
    series = []
    for count, title in PARTS.items():
        series.append(
            bars(f"maps from {title}", [mean_and_range(runs, f"instability_{count}") for runs in kinds.values()])
        )
    return Bars(
        title="Difference between maps of disjoint parts, in units of the predictions' variance",
        names=list(kinds),
        y_label="instability",
        series=series,
        note="Means over seeds with the lowest and highest.",
    )


def _table(kinds: Mapping[str, Sequence[Result]], pairs: Sequence[Result]) -> Table:
    """One row per pair; the standard deviation over seeds is repeated in every row of its objective."""
    columns = {"r2": "R²", "directions": "directions"}
    columns |= {f"instability_{count}": f"instability, {title}" for count, title in PARTS.items()}
    columns |= {f"moved_{count}": f"in units of the target, {title}" for count, title in PARTS.items()}
    rows = []
    for pair in pairs:
        values = _finite(kinds.get(pair.at["objective"], []), "r2")
        deviation = f"{values.std(ddof=1):.4f}" if len(values) > 1 else "–"
        cells = [plain(pair.value(name)) for name in columns]
        rows.append([pair.at["objective"], pair.at["seed"], pair.status, *cells, deviation])
    names = ["objective", "seed", "agents", *columns.values(), "R², standard deviation over seeds"]
    return Table("Maps from disjoint parts of the objects", names, rows)
