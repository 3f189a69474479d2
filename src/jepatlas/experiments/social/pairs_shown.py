"""What few and mismatched pairs cost a map between trained agents, to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.core.records import Estimate
from jepatlas.experiments.alignment.pair_noise import PUBLISHED, SHARES
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import curve, extremes, mean_and_range
from jepatlas.experiments.social.scenes import SCENES
from jepatlas.experiments.social.stress import METHODS, ROBUST

__all__ = ["budget_figure", "budget_table", "counts_of", "noise_figure", "noise_table"]


def counts_of(runs: Sequence[Result]) -> list[int]:
    """The budgets that the pairs of a scene were measured at."""
    names = {verdict["name"] for run in runs for verdict in run.record["verdicts"]}
    return sorted(int(name.rsplit("_", 1)[1]) for name in names if name.startswith("r2_ridge_"))


def budget_figure(scenes: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    panels = []
    for scene, runs in scenes.items():
        counts = counts_of(runs)
        series = [
            curve(name, counts, [_drawn(mean_and_range(runs, f"r2_{name}_{n}")) for n in counts]) for name in METHODS
        ]
        panels.append({"title": SCENES[scene].title, "series": series})
    return {
        "kind": "curves",
        "title": "Held-out R² against the number of pairs",
        "x_label": "pairs",
        "log_x": True,
        "y_label": "held-out R²",
        "panels": panels,
        "note": "R² below −1 is drawn as −1.",
    }


def _drawn(found: Estimate) -> Estimate:
    return Estimate(max(found.value, -1.0), max(found.low, -1.0), max(found.high, -1.0), found.n)


def noise_figure(scenes: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    panels = []
    for scene, runs in scenes.items():
        series = [
            curve(name, SHARES, [mean_and_range(runs, f"r2_noise_{name}_{share:g}") for share in SHARES])
            for name in ROBUST
        ]
        published = {"name": "published", "x": list(PUBLISHED), "y": [r for r, _ in PUBLISHED.values()], "dash": True}
        panels.append({"title": SCENES[scene].title, "series": [*series, published]})
    return {
        "kind": "curves",
        "title": "Held-out R² against mismatched pairs",
        "x_label": "share mismatched",
        "y_label": "held-out R²",
        "panels": panels,
    }


def budget_table(scenes: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    rows = [
        [
            SCENES[scene].title,
            f"{n:,}",
            *(extremes(mean_and_range(runs, f"r2_{name}_{n}")) for name in METHODS),
            f"{np.median([run.value(f'kappa_least squares_{n}') for run in runs]):.3g}",
            extremes(mean_and_range(runs, "directions"), 1),
        ]
        for scene, runs in scenes.items()
        for n in counts_of(runs)
    ]
    columns = ["scene", "pairs", *(f"R², {name}" for name in METHODS), "κ(W), least squares (median)", "directions"]
    return {"title": "Pairs: held-out R², means over seeds (lowest to highest)", "columns": columns, "rows": rows}


def noise_table(scenes: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    rows = [
        [
            SCENES[scene].title,
            f"{share:g}",
            *(extremes(mean_and_range(runs, f"r2_noise_{name}_{share:g}")) for name in ROBUST),
            *(f"{np.median([run.value(f'kappa_noise_{name}_{share:g}') for run in runs]):.3g}" for name in ROBUST),
            " ".join(map(str, PUBLISHED.get(share, ("–",)))),
            extremes(mean_and_range(runs, "directions"), 1),
        ]
        for scene, runs in scenes.items()
        for share in SHARES
    ]
    columns = [
        "scene",
        "mismatched",
        *(f"R², {name}" for name in ROBUST),
        *(f"κ(W), {name}" for name in ROBUST),
        "published R², κ",
        "directions",
    ]
    return {
        "title": "Mismatched pairs: held-out R², means over seeds (lowest to highest)",
        "columns": columns,
        "rows": rows,
    }
