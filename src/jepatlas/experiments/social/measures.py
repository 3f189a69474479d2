"""What is measured of two agents: a ridge map between standardised latents, as published, judged on held-out groups.

    R²               of the map, between standardised latents; `raw`: of a map between latents as they are
    R² of a rotation of the best similarity between latents as they are: what an isometry would keep
    DSC, NOS@k       of the first agent's latents and what the inverse makes of the second's, truncated at τ = 100
    … there          of what the map makes of the first agent's latents, and the second's: with no inverse
    κ                of least squares between the principal directions with 99% of the variance on either side

Intervals come from halves of the groups, p from pairing whole groups anew; neither fits the map again, so that all of
it takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.maps import LeastSquaresMap, ProcrustesMap, RidgeMap
from jepatlas.alignment.nulls import half_sample_intervals, permutation_null
from jepatlas.alignment.similarity import NEIGHBOURS, cka_debiased, dsc, neighbour_overlap, nos
from jepatlas.core.linear import r2, subsample
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.core.records import Direction, Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Scale
from jepatlas.experiments.social.charts import CONTROLS, Met, charts_of, leading

__all__ = ["EFFORT", "Effort", "Translation", "measured", "translate"]

DIRECTIONS: dict[str, Direction] = {
    "r2": "higher",
    "r2_raw": "higher",
    "dsc": "higher",
    "dsc_there": "higher",
    "nos_10": "lower",
    "nos_10_there": "lower",
}


@dataclass(frozen=True)
class Effort:
    permutations: int
    replicates: int
    rows: int
    """Held-out states at most."""


EFFORT: dict[Scale, Effort] = {"tiny": Effort(9, 8, 60), "small": Effort(199, 40, 300), "paper": Effort(199, 100, 1000)}


@dataclass(frozen=True)
class Translation:
    """A fitted map, and held-out rows on both sides of it, in its standard units."""

    fitted: RidgeMap
    target: np.ndarray
    predicted: np.ndarray
    raw: tuple[np.ndarray, np.ndarray]  # target and prediction, as they are
    own: np.ndarray
    back: np.ndarray
    rotated: np.ndarray | None
    """What the best similarity predicts; None where the widths differ."""

    def scores(self, rows: np.ndarray, order: np.ndarray) -> dict[str, float]:
        """Measures of some rows of the first side with others of the second."""
        return {
            "r2": r2(self.target[order], self.predicted[rows]),
            "r2_raw": r2(self.raw[0][order], self.raw[1][rows]),
            "dsc": dsc(self.own[rows], self.back[order]),
            "dsc_there": dsc(self.predicted[rows], self.target[order]),
            "nos_10": self.neighbourhoods(rows, order, (10,))["nos_10"],
            "nos_10_there": nos(self.predicted[rows], self.target[order], 10) if len(rows) > 10 else np.nan,
        }

    def neighbourhoods(self, rows: np.ndarray, order: np.ndarray, ks: tuple[int, ...] = NEIGHBOURS) -> dict[str, float]:
        """NOS@k; NaN for neighbourhoods that have more states than there are."""
        fits = [k for k in ks if k < len(rows)]
        shares = neighbour_overlap(self.own[rows], self.back[order], fits) if fits else {}
        return {f"nos_{k}": float(1 - shares[k].mean()) if k in shares else np.nan for k in ks}


def translate(met: Met, a: np.ndarray, b: np.ndarray, rows: int, fit: np.ndarray | None = None) -> Translation:
    """Fit on the states that were learned from (or on `fit`), and apply to an even choice of those held out."""
    fit, held = met.split.fit if fit is None else fit, met.split.score
    score = subsample(held, rows)
    fitted, plain = (
        RidgeMap(standardise=standardise, condition_limit=CONDITION_LIMIT).fit(a[fit], b[fit], groups=met.groups[fit])
        for standardise in (True, False)
    )
    x_scale, y_scale = (np.where(scale > 0, scale, 1.0) for scale in (fitted.map_.x_scale, fitted.map_.y_scale))
    same = a.shape[1] == b.shape[1]
    return Translation(
        fitted=fitted,
        target=b[score] / y_scale,
        predicted=fitted.transform(a[score]) / y_scale,
        raw=(b[score], plain.transform(a[score])),
        own=a[score] / x_scale,
        back=fitted.inverse_transform(b[score]) / x_scale,
        rotated=ProcrustesMap(scaled=True).fit(a[fit], b[fit]).transform(a[score]) if same else None,
    )


def measured(met: Met, effort: Effort, seed: int = 0) -> dict[str, Estimate]:
    """Everything that is compared of a pair of agents: `r2`, `r2_pca`, … and `beyond`, R² over the best control.

    The same of latents as they are is `r2_raw`, `r2_raw_pca`, … and `beyond_raw`; of distances and of neighbours
    `beyond_dsc` and `beyond_nos_10`, which is above 0 where neighbours are kept better, and `beyond_nos_10_there`.

    Standardised, the last principal component of images weighs as much as the first; as they are, a latent's widest
    direction outweighs all others. Neither is fair to both sides, so an agent is to be beyond its controls in either.
    """
    charts = {name: translate(met, *sides, effort.rows) for name, sides in charts_of(met).items()}
    count = len(charts["agents"].target)
    held = met.groups[subsample(met.split.score, effort.rows)]

    def every(rows: np.ndarray) -> Mapping[str, float]:
        found = {
            f"{key}_{name}" if name != "agents" else key: value
            for name, chart in charts.items()
            for key, value in chart.scores(rows, rows).items()
        }
        beyond = {
            name: found[key] - max(found[f"{key}_{control}"] for control in CONTROLS)
            for name, key in (("beyond", "r2"), ("beyond_raw", "r2_raw"), ("beyond_dsc", "dsc"))
        }
        nearer = {
            f"beyond_{key}": min(found[f"{key}_{control}"] for control in CONTROLS) - found[key]
            for key in ("nos_10", "nos_10_there")
        }
        return found | beyond | nearer | {"beyond_pixels": found["r2"] - found["r2_pixels"]}

    rng, all_rows, agents = numpy_generator(seed, "evidence"), np.arange(count), charts["agents"]
    found = half_sample_intervals(every, count, rng, groups=held, replicates=effort.replicates, ranges=_ranges(charts))
    nulls = permutation_null(
        lambda order: agents.scores(all_rows, order),
        count,
        rng,
        directions=DIRECTIONS,
        groups=held,
        permutations=effort.permutations,
    )
    single = {f"p_{name}": null.p for name, null in nulls.items()} | {"chance": nulls["r2"].mean}
    single |= _of_map(agents, met) | _neighbourhoods(charts, all_rows) | {"cka": cka_debiased(*agents_of(met))}
    return found | {name: Estimate(value, value, value, count) for name, value in single.items()}


def _ranges(names: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Between which values each score lies: no interval goes beyond."""
    ends = {
        "r2": (-np.inf, 1.0),
        "r2_raw": (-np.inf, 1.0),
        "dsc": (-1.0, 1.0),
        "dsc_there": (-1.0, 1.0),
        "nos_10": (0.0, 1.0),
        "nos_10_there": (0.0, 1.0),
    }
    return {f"{key}_{name}" if name != "agents" else key: end for name in names for key, end in ends.items()}


def agents_of(met: Met) -> tuple[np.ndarray, np.ndarray]:
    """Latents of the held-out states, as they are."""
    return met.a["h"][met.split.score], met.b["h"][met.split.score]


def _of_map(chart: Translation, met: Met) -> dict[str, float]:
    about, fit = chart.fitted.conditioning_, met.split.fit
    a, b = (leading(side["h"], fit)[fit] for side in (met.a, met.b))
    found = {
        "kappa": LeastSquaresMap().fit(a, b).conditioning_.condition,
        "carried": min(a.shape[1], b.shape[1]),
        "effective_rank": about.effective_rank,
        "orthogonality": np.nan if about.orthogonality is None else about.orthogonality,
    }
    rotated = np.nan if chart.rotated is None else r2(chart.raw[0], chart.rotated)
    mse = float(np.square(chart.target - chart.predicted).mean())
    return {name: float(value) for name, value in found.items()} | {"r2_rotation": rotated, "mse": mse}


def _neighbourhoods(charts: Mapping[str, Translation], rows: np.ndarray) -> dict[str, float]:
    compared = {name: charts[name].neighbourhoods(rows, rows) for name in ("agents", *CONTROLS)}
    return {f"{key}_of_{name}": value for name, found in compared.items() for key, value in found.items()}
