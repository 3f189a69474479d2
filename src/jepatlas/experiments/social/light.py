"""How much of an alignment is the light that two views share.

A state of the rendered world has one light, which lies on all that either camera sees. One bit so makes the latents of
two agents alike, and those of two networks that learned nothing, perhaps more so. Of agents and of controls:

    alone     R² of what the light alone tells of the second side: the mean of each light, and no first agent
    within    R² of a map between latents less the mean of their light
    beyond    R² within a light, above that of the best control

Means and maps are those of the states that were learned from, scores of those held out. All of it was added after
results had been seen: it informs, and no rule looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.alignment.nulls import half_sample_intervals
from jepatlas.core.linear import r2, subsample
from jepatlas.core.records import Estimate
from jepatlas.core.seeding import numpy_generator
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import cell, extremes, mean_and_interval_with_groups, mean_and_range
from jepatlas.experiments.social.charts import COMPARED, CONTROLS, NAMES, Met, charts_of
from jepatlas.experiments.social.measures import Effort, translate
from jepatlas.experiments.social.rules import least_of
from jepatlas.worlds.objects import LIGHTS

__all__ = ["light_sentence", "light_table", "of_light"]

UNITS = {"r2": "standardised", "r2_raw": "as they are"}
Kinds = Mapping[str, Sequence[Result]]


def of_light(met: Met, effort: Effort, seed: int = 0) -> dict[str, Estimate]:
    """All three, in both units; nothing where states have no light, or all the same."""
    lights = _lights(met)
    if lights is None:
        return {}
    charts = charts_of(met)
    sides = {name: [_less(side, lights, met.split.fit) for side in charts[name]] for name in COMPARED}
    maps = {name: translate(met, a, b, effort.rows) for name, (a, b) in sides.items()}
    score = subsample(met.split.score, effort.rows)

    def within(rows: np.ndarray) -> dict[str, float]:
        found = {
            f"{unit}_within_{name}": value
            for name, chart in maps.items()
            for unit, value in _r2_of(chart.target, chart.predicted, chart.raw, rows).items()
        }
        best = {unit: max(found[f"{unit}_within_{control}"] for control in CONTROLS) for unit in UNITS}
        return found | {f"{unit}_within_beyond": found[f"{unit}_within_agents"] - best[unit] for unit in UNITS}

    ranges = {f"{unit}_within_{name}": (-np.inf, 1.0) for unit in UNITS for name in COMPARED}
    found = half_sample_intervals(
        within,
        len(score),
        numpy_generator(seed, "light"),
        groups=met.groups[score],
        replicates=effort.replicates,
        ranges=ranges,
    )
    alone = {
        f"{unit}_light_{name}": value
        for name in COMPARED
        for unit, value in _told(charts[name][1], sides[name][1], met.split.fit, score).items()
    }
    return found | {name: Estimate(value, value, value, len(score)) for name, value in alone.items()}


def _lights(met: Met) -> np.ndarray | None:
    """By the end of a state's name."""
    ends = np.array([str(name).rpartition("-")[2] for name in met.a["ids"]])
    return ends if len(np.unique(ends)) > 1 and np.isin(ends, list(LIGHTS)).all() else None


def _less(h: np.ndarray, lights: np.ndarray, fit: np.ndarray) -> np.ndarray:
    """Latents less the mean that those of `fit` have in the same light."""
    left = h.astype(np.float64)
    for light in np.unique(lights):
        left[lights == light] -= h[fit[lights[fit] == light]].mean(0, dtype=np.float64)
    return left


def _r2_of(
    target: np.ndarray, predicted: np.ndarray, raw: tuple[np.ndarray, np.ndarray], rows: np.ndarray
) -> dict[str, float]:
    return {"r2": r2(target[rows], predicted[rows]), "r2_raw": r2(raw[0][rows], raw[1][rows])}


def _told(h: np.ndarray, left: np.ndarray, fit: np.ndarray, score: np.ndarray) -> dict[str, float]:
    """R² of the light's mean, which is all that was taken away."""
    spread = h[fit].std(0, dtype=np.float64)
    unit, every = np.where(spread > 0, spread, 1.0), np.arange(len(score))
    target, mean = h[score].astype(np.float64), h[score] - left[score]
    return _r2_of(target / unit, mean / unit, (target, mean), every)


def light_table(kinds: Kinds) -> tuple[dict[str, Any], ...]:
    """What agents and controls have by the light and without it; no table where there is but one light."""
    lit = _lit(kinds)
    parts = {"": "R²", "_light": "by the light alone", "_within": "within a light"}
    rows = [
        [
            title,
            NAMES[name],
            *(extremes(mean_and_range(runs, _key(unit, part, name))) for unit in UNITS for part in parts),
        ]
        for title, runs in lit.items()
        for name in COMPARED
    ]
    columns = ["agents", "of", *(f"{title}, {name}" for name in UNITS.values() for title in parts.values())]
    title = "The light that both views share, means over seeds (lowest to highest): looked at after results were known"
    return ({"title": title, "columns": columns, "rows": rows},) if rows else ()


def _key(unit: str, part: str, name: str) -> str:
    if part:
        return f"{unit}{part}_{name}"
    return unit if name == "agents" else f"{unit}_{name}"


def light_sentence(kinds: Kinds) -> str:
    """In words, with a space before it; nothing where there is but one light."""
    lit = _lit(kinds)
    if not lit:
        return ""
    alone = ", ".join(f"{title} {mean_and_range(runs, 'r2_light_agents').value:.2f}" for title, runs in lit.items())
    blind = [mean_and_range(runs, "r2_light_untrained").value for runs in lit.values()]
    return (
        " Of all this, the light that both views share was looked at after results were known, so it decides "
        f"nothing. By R² between standardised latents, the light alone tells of trained agents: {alone}; of "
        f"untrained ones: {_range(blind)}. Within a light, by the same R², and beyond the best control in the unit "
        "(standardised, or as latents are) in which that is less: "
        + "; ".join(_said(title, runs, len(lit)) for title, runs in lit.items())
        + "."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _said(title: str, runs: Sequence[Result], among: int) -> str:
    """Beyond the best control in the unit in which that is less."""
    value = {name: mean_and_range(runs, f"r2_within_{name}").value for name in COMPARED}
    gain = least_of([mean_and_interval_with_groups(runs, f"{unit}_within_beyond", among) for unit in UNITS])
    best = max(CONTROLS, key=value.__getitem__)
    return f"{title} {value['agents']:.2f}, {NAMES[best]} {value[best]:.2f}, beyond {cell(gain, 2)}"


def _lit(kinds: Kinds) -> Kinds:
    return {title: runs for title, runs in kinds.items() if mean_and_range(runs, "r2_within_agents").n}
