"""What `reacher-exploration` shows: every probe of every motion, and the Hermite degrees of what was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import cell, curve, mean_and_range
from jepatlas.experiments.reacher.reacher_probes import DEGREE, PLACES, TARGETS

__all__ = ["SHOWN", "degree_figure", "probe_figure", "probe_table"]

SHOWN = tuple(f"angles_{place}_{place}" for place in PLACES)
"""The probes that are fitted and scored on one distribution."""
SHARES = (*(f"degree_{d}" for d in range(1, DEGREE + 1)), "beyond")
WORDS = {"angles": "angles", "circle": "sin, cos"}
PROBES = {f"{t}_{a}_{b}": f"{WORDS[t]}: {a} → {b}" for t, a, b in product(TARGETS, PLACES, PLACES)}

Groups = Mapping[str, Sequence[Result]]
Titles = Mapping[str, str]


def probe_figure(groups: Groups, titles: Titles) -> dict[str, Any]:
    matrix = [[float(np.maximum(-1, mean_and_range(groups[arm], name).value)) for arm in titles] for name in PROBES]
    briefly = [title.replace(" ", "\n", 1) for title in titles.values()]  # narrow columns
    return {
        "kind": "heatmap",
        "title": "R², mean over seeds",
        "matrix": matrix,
        "x": briefly,
        "y": list(PROBES.values()),
        "note": "What is probed: where the probe is fitted → where it is scored. What is below −1 is shown as −1.",
    }


def degree_figure(groups: Groups, titles: Titles) -> dict[str, Any]:
    places = list(range(1, len(SHARES) + 1))
    series = [
        curve(title, places, [mean_and_range(groups[arm], name) for name in SHARES]) for arm, title in titles.items()
    ]
    return {
        "kind": "curves",
        "title": "The latents' variance over Gaussian poses",
        "x_label": "Hermite degree",
        "y_label": "share of variance",
        "series": series,
        "note": f"{places[-1]}: all higher degrees together. Bands: the extremes over seeds.",
    }


def probe_table(results: Sequence[Result], titles: Titles) -> dict[str, Any]:
    rows = [
        [
            titles[r.at["arm"]],
            r.at["seed"],
            r.status,
            f"{r.value('correlation'):.3f}",
            *(cell(r.estimate(name)) for name in PROBES),
            cell(r.estimate(f"untrained_{SHOWN[1]}")),
            *(f"{r.value(name):.3f}" for name in SHARES),
        ]
        for r in results
    ]
    columns = [
        "motion",
        "seed",
        "status",
        "correlation of a pair",
        *PROBES.values(),
        f"untrained, {PROBES[SHOWN[1]]}",
        *(f"degree {d}" for d in range(1, DEGREE + 1)),
        "beyond",
    ]
    return {
        "title": "R² with 95% intervals: fitted on → scored on; shares of variance by degree",
        "columns": columns,
        "rows": rows,
    }
