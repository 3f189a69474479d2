"""Distances and neighbours depend on where the inverse of a map is truncated, which the preprint does not tell.

DSC and NOS@10 are published between the first agent's latents and what the inverse of W makes of the second's. W is
ill-conditioned, so that its whole inverse drowns the second agent in noise, and a truncated one leaves out what is
faint. Beside τ = 100, which the study takes, are other τ, and the way there: between what W makes of the first agent's
latents and the second's, with no inverse at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.alignment.similarity import dsc, nos
from jepatlas.core.linear import subsample
from jepatlas.core.records import Estimate
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import extremes, mean_and_range
from jepatlas.experiments.social.charts import COMPARED, NAMES, Met, charts_of
from jepatlas.experiments.social.measures import Effort, translate

__all__ = ["truncated", "truncations_table"]

LIMITS = (10.0, 100.0, 1e3, 1e6)
K = 10


def truncated(met: Met, effort: Effort) -> dict[str, Estimate]:
    """DSC and NOS@10 of agents and controls at every τ."""
    score, found = subsample(met.split.score, effort.rows), dict[str, float]()
    for name, (a, b) in charts_of(met).items():
        if name in COMPARED and len(score) > K:
            chart = translate(met, a, b, effort.rows)
            scale = np.where(chart.fitted.map_.x_scale > 0, chart.fitted.map_.x_scale, 1.0)
            for limit in LIMITS:
                back = chart.fitted.map_.invert(limit).apply(b[score]) / scale
                found |= {
                    f"dsc_tau_{limit:g}_{name}": dsc(chart.own, back),
                    f"nos_tau_{limit:g}_{name}": nos(chart.own, back, K),
                }
    return {name: Estimate(value, value, value, len(score)) for name, value in found.items()}


def truncations_table(kinds: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Both measures at every τ, and on the way there."""
    measures = {"dsc": "DSC", "nos": "NOS@10"}
    there = {"dsc": "dsc_there", "nos": "nos_10_there"}
    rows = [
        [
            title,
            NAMES[name],
            *(
                extremes(mean_and_range(runs, key))
                for measure in measures
                for key in (
                    *(f"{measure}_tau_{limit:g}_{name}" for limit in LIMITS),
                    there[measure] + ("" if name == "agents" else f"_{name}"),
                )
            ),
        ]
        for title, runs in kinds.items()
        for name in COMPARED
    ]
    columns = [
        "agents",
        "of",
        *(
            f"{title}, {way}"
            for title in measures.values()
            for way in (*(f"τ = {limit:g}" for limit in LIMITS), "no inverse")
        ),
    ]
    return {
        "title": "Distances and neighbours by where the inverse of the map is truncated: means over seeds (lowest "
        "to highest)",
        "columns": columns,
        "rows": rows,
    }
