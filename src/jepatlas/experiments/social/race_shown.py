"""A race of ways to train, to look at: every run, what the ways cost over seeds, and accuracies as training goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_range, plain
from jepatlas.experiments.social.race import LEAST, learned, reached
from jepatlas.experiments.social.race_words import factor_text

__all__ = ["curves_figure", "race_tables"]

FAR = 0.2  # of accuracy
Scaled = Callable[[Result, str], np.ndarray]


def race_tables(results: Sequence[Result], ways: Mapping[str, str], published: Mapping[str, tuple[str, str]]) -> Any:
    """Every run and, where enough seeds learned something, what the ways cost over these."""
    left = learned(results)
    return (_runs(results, ways, published), *([_costs(left, ways, len(results))] if len(left) >= LEAST else []))


def _runs(results: Sequence[Result], ways: Mapping[str, str], published: Mapping[str, tuple[str, str]]) -> Any:
    """One row for each way and seed; what is published stands in the last columns."""
    rows = [
        [
            title,
            r.at["seed"],
            r.record.get("ways", {}).get(name, r.status),
            plain(r.value(f"{name}_final")),
            plain(r.value(f"{name}_directions"), ".1f"),
            plain(r.value("untrained")),
            plain(r.value("threshold")),
            plain(r.value("majority")),
            *_spent(r, name),
            *published.get(name, ("", "")),
        ]
        for name, title in ways.items()
        for r in results
    ]
    columns = [
        "way",
        "seed",
        "run",
        "accuracy at the end",
        "directions",
        "before the first step",
        "threshold",
        "commonest class",
        "reached",
        "epochs",
        "× operations",
        "published epochs",
        "published ×",
    ]
    return {
        "title": "Epochs and operations until a probe reaches the threshold on held-out groups",
        "columns": columns,
        "rows": rows,
    }


def _spent(result: Result, name: str) -> tuple[str, str, str]:
    """Where the first way learned nothing, nobody reaches anything, and nobody is charged."""
    if result.value("learned") != 1:
        return "–", "nothing learned", "–"
    return (
        "yes" if result.value(f"{name}_reached") == 1 else "no",
        plain(result.value(f"{name}_epochs"), ".1f"),
        plain(result.value(f"{name}_times"), ".2f"),
    )


def _costs(left: Sequence[Result], ways: Mapping[str, str], seeds: int) -> Any:
    """What the operations are made of. A step costs the same at every seed, and so do the map's share of it and what
    was paid before."""
    rows = [
        [
            title,
            f"{reached(left, name)} of {len(left)}",
            factor_text(geometric_mean_and_interval(left, f"{name}_epochs"), ".1f"),
            factor_text(geometric_mean_and_interval(left, f"{name}_flops"), ".3g"),
            plain(mean_and_range(left, f"{name}_map").value, ".2%"),
            plain(mean_and_range(left, f"{name}_before").value, ".3g"),
            *(factor_text(geometric_mean_and_interval(left, f"{name}_{key}")) for key in ("times", "all")),
        ]
        for name, title in ways.items()
    ]
    columns = [
        "way",
        "reached",
        "epochs",
        "operations to the threshold",
        "of which the map",
        "paid before: teacher and its latents",
        "×, without what was paid before",
        "×, with it",
    ]
    title = (
        f"Costs to the threshold: geometric means over seeds [95% intervals], of the {len(left)} of {seeds} seeds "
        "at which something was learned"
    )
    return {"title": title, "columns": columns, "rows": rows}


def curves_figure(results: Sequence[Result], ways: Mapping[str, str], title: str) -> dict[str, Any]:
    """Accuracy by epochs, by operations and, where something was paid before, with that: means over seeds, with the
    lowest and the highest."""
    units = {"epochs": _epochs, "operations": _operations}
    if any(mean_and_range(results, f"{name}_before").value > 0 for name in ways):
        units["operations, with the teacher's"] = lambda result, name: (
            _operations(result, name) + result.value(f"{name}_before")
        )
    panels = [
        {
            "title": f"by {unit}",
            "x_label": unit,
            "series": [
                _mean_curve(results, name, label, scale)
                for name, label in ways.items()
                if any(name in r.record.get("curves", {}) for r in results)
            ],
        }
        for unit, scale in units.items()
    ]
    for panel in panels:
        panel["series"] += _constants(results, panel["series"])
    share = mean_and_range(results, "majority").value
    return {
        "kind": "curves",
        "title": title,
        "y_label": "probe accuracy, held out",
        "panels": panels,
        "note": "Held-out groups; means over seeds, with the lowest and the highest as bands. The commonest class "
        f"alone gives {share:.3f}.",
    }


def _constants(results: Sequence[Result], curves: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is to be reached, and the commonest class where it is not far below all curves, which it would flatten."""
    end, lowest = max(max(one["x"]) for one in curves), min(min(one["low"]) for one in curves)
    known = {
        "threshold": mean_and_range(results, "threshold").value,
        "commonest class": mean_and_range(results, "majority").value,
    }
    return [
        {"name": name, "x": [0.0, end], "y": [value, value], "dash": True}
        for name, value in known.items()
        if value >= lowest - FAR
    ]


def _epochs(result: Result, name: str) -> np.ndarray:
    return np.array(result.record["curves"][name])[:, 0] / result.record["epoch"]


def _operations(result: Result, name: str) -> np.ndarray:
    """Of a step, as many as of the steps to the threshold, by their number."""
    each = result.value(f"{name}_flops") / (result.value(f"{name}_epochs") * result.record["epoch"])
    return np.array(result.record["curves"][name])[:, 0] * each


def _mean_curve(results: Sequence[Result], name: str, label: str, scale: Scaled) -> dict[str, Any]:
    """Checkpoints are the same for all seeds; costs of a step are, too, but for the teacher's."""
    there = [r for r in results if name in r.record.get("curves", {})]
    y = np.stack([np.array(r.record["curves"][name])[:, 1] for r in there])
    x = np.stack([scale(r, name) for r in there]).mean(0)
    low, high = y.min(0).tolist(), y.max(0).tolist()
    return {"name": label, "x": x.tolist(), "y": y.mean(0).tolist(), "low": low, "high": high}
