"""Social-JEPA's predictions, to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import bars, mean_and_range, plain
from jepatlas.experiments.social.charts import CONTROLS, NAMES
from jepatlas.experiments.social.predictions_runs import step_name
from jepatlas.experiments.social.rules import MEASURES

__all__ = [
    "loss_figure",
    "loss_table",
    "predictors_figure",
    "predictors_table",
    "stability_figure",
    "stability_table",
    "worlds_figure",
    "worlds_table",
]

Spec = dict[str, Any]
EXTREMES = "Bars are means over seeds, with the lowest and the highest."


def loss_figure(pairs: Sequence[Result], steps: Sequence[int], taken: Mapping[str, str]) -> Spec:
    """One line for each pair of agents, from its first checkpoint to its last."""
    shown = {**taken, "directions": "directions of the latents"}
    found = [pair for pair in pairs if pair.status == "finished"]
    panels = [
        {
            "title": title,
            "series": [
                {
                    "name": f"seed {pair.at['seed']}",
                    "x": [pair.value(step_name("loss", step)) for step in steps],
                    "y": [pair.value(step_name(name, step)) for step in steps],
                }
                for pair in found
            ],
        }
        for name, title in shown.items()
    ]
    return {
        "kind": "curves",
        "title": "As agents learn: alignment against their held-out loss",
        "log_x": True,
        "x_label": "held-out prediction loss, both agents' mean",
        "y_label": "",
        "panels": panels,
        "note": "Training goes from right to left where the loss falls.",
    }


def loss_table(pairs: Sequence[Result], steps: Sequence[int], taken: Mapping[str, str]) -> Spec:
    columns = {
        "loss": "held-out loss",
        "untold": "as a share of the targets' variance",
        **taken,
        "directions": "directions",
    }
    rows = [
        [pair.at["seed"], step, pair.status, *(plain(pair.value(step_name(name, step))) for name in columns)]
        for pair in pairs
        for step in steps
    ]
    return {
        "title": "Checkpoints of each pair of agents",
        "columns": ["seed", "step", "agents", *columns.values()],
        "rows": rows,
    }


def predictors_figure(kinds: Mapping[str, Sequence[Result]]) -> Spec:
    titles = {"r2": NAMES["agents"]} | {f"r2_{name}": NAMES[name] for name in CONTROLS}
    series = [bars(title, [mean_and_range(runs, name) for runs in kinds.values()]) for name, title in titles.items()]
    return {
        "kind": "bars",
        "title": "Held-out R² by predictor, from weak to strong",
        "names": list(kinds),
        "y_label": "held-out R²",
        "series": series,
        "note": EXTREMES,
    }


def predictors_table(pairs: Sequence[Result], ladder: Mapping[str, str]) -> Spec:
    columns = {
        "loss": "loss in the last step",
        "spread": "spread of its targets",
        **MEASURES,
        "beyond": "R² beyond the best control",
        "p_r2": "p",
        "directions": "directions",
    }
    rows = [
        [title, pair.at["seed"], pair.status, *(plain(pair.value(name)) for name in columns)]
        for objective, title in ladder.items()
        for pair in pairs
        if pair.at["objective"] == objective
    ]
    return {"title": "Predictors", "columns": ["predictor", "seed", "agents", *columns.values()], "rows": rows}


def stability_figure(kinds: Mapping[str, Sequence[Result]], parts: Mapping[int, str]) -> Spec:
    series = [
        bars(f"maps from {title}", [mean_and_range(runs, f"unrest_{count}") for runs in kinds.values()])
        for count, title in parts.items()
    ]
    return {
        "kind": "bars",
        "title": "How far maps from other pairs differ, in units of what they tell",
        "names": list(kinds),
        "y_label": "unrest",
        "series": series,
        "note": EXTREMES,
    }


def stability_table(kinds: Mapping[str, Sequence[Result]], pairs: Sequence[Result], parts: Mapping[int, str]) -> Spec:
    """One row for each pair of agents; the standard deviation over seeds stands in every row of its objective."""
    columns = {"r2": "R²", "directions": "directions"}
    columns |= {f"unrest_{count}": f"unrest, {title}" for count, title in parts.items()}
    columns |= {f"moved_{count}": f"in units of the target, {title}" for count, title in parts.items()}
    rows = [
        [
            pair.at["objective"],
            pair.at["seed"],
            pair.status,
            *(plain(pair.value(name)) for name in columns),
            _deviation(kinds.get(pair.at["objective"], [])),
        ]
        for pair in pairs
    ]
    names = ["objective", "seed", "agents", *columns.values(), "R², standard deviation over seeds"]
    return {"title": "Maps from disjoint parts of the objects", "columns": names, "rows": rows}


def _deviation(runs: Sequence[Result]) -> str:
    values = np.array([run.value("r2") for run in runs])
    values = values[np.isfinite(values)]
    return f"{values.std(ddof=1):.4f}" if len(values) > 1 else "–"


def worlds_figure(same: Sequence[Result], apart: Sequence[Result]) -> Spec:
    titles = {"r2": NAMES["agents"]} | {f"r2_{name}": NAMES[name] for name in CONTROLS}
    series = [bars(title, [mean_and_range(runs, name) for runs in (same, apart)]) for name, title in titles.items()]
    return {
        "kind": "bars",
        "title": "Held-out R² of agents that learned in the same world, or in two",
        "names": ["the same world", "different worlds"],
        "y_label": "held-out R²",
        "series": series,
        "note": EXTREMES,
    }


def worlds_table(same: Sequence[Result], apart: Sequence[Result]) -> Spec:
    columns = {
        **MEASURES,
        "r2_untrained": "R², untrained",
        "r2_pca": "R², PCA",
        "beyond": "R² beyond the best control",
        "p_r2": "p",
        "directions": "directions",
    }
    rows = [
        [title, pair.at["objective"], pair.at["seed"], pair.status, *(plain(pair.value(name)) for name in columns)]
        for title, runs in (("the same", same), ("different", apart))
        for pair in runs
    ]
    return {
        "title": "Agents that learned of some kinds of objects alone, judged by new objects of all kinds",
        "columns": ["worlds", "first agent", "seed", "agents", *columns.values()],
        "rows": rows,
    }
