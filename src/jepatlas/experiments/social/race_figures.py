"""Figures and tables of races of ways to train: every run, costs over seeds, and accuracies during training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jepatlas.core.figures import Curve, CurvePanel, Curves, Table
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import geometric_mean_and_interval, mean_and_range, plain
from jepatlas.experiments.social.race_runs import MIN_SEEDS, learned, reached

__all__ = ["accuracy_figure", "race_tables"]

Ways = Mapping[str, str]
Published = Mapping[str, tuple[str, str]]
"""Published epochs and operations of each way."""
MAX_GAP = 0.2
"""A reference line is left out if it is further below all curves, because it would flatten them."""
UNINFORMATIVE = 1000
"""Ratio of the limits of an interval that excludes nothing."""


def race_tables(results: Sequence[Result], ways: Ways, published: Published) -> tuple[Table, ...]:
    """Every run and, if enough seeds count, the costs over them."""
    runs = _runs_table(results, ways, published)
    counted = learned(results)
    return (runs, _costs_table(counted, ways, len(results))) if len(counted) >= MIN_SEEDS else (runs,)


def _runs_table(results: Sequence[Result], ways: Ways, published: Published) -> Table:
    rows = []
    for name, title in ways.items():
        for result in results:
            rows.append(
                [
                    title,
                    result.at["seed"],
                    result.record.get("ways", {}).get(name, result.status),
                    plain(result.value(f"{name}_final")),
                    plain(result.value(f"{name}_directions"), ".1f"),
                    plain(result.value("untrained")),
                    plain(result.value("threshold")),
                    plain(result.value("majority")),
                    *_cost_cells(result, name),
                    *published.get(name, ("", "")),
                ]
            )
    columns = [
        "way",
        "seed",
        "run",
        "final accuracy",
        "directions",
        "before the first step",
        "threshold",
        "majority class",
        "reached",
        "epochs",
        "× operations",
        "published epochs",
        "published ×",
    ]
    return Table("Epochs and operations until a probe reaches the threshold on held-out groups", columns, rows)


def _cost_cells(result: Result, name: str) -> tuple[str, str, str]:
    if result.value("learned") != 1:
        return "–", "nothing learned", "–"
    return (
        "yes" if result.value(f"{name}_reached") == 1 else "no",
        plain(result.value(f"{name}_epochs"), ".1f"),
        plain(result.value(f"{name}_times"), ".2f"),
    )


def _costs_table(counted: Sequence[Result], ways: Ways, seeds: int) -> Table:
    """A step costs the same at every seed, and so do the share of the map and the prior cost."""
    rows = []
    for name, title in ways.items():
        rows.append(
            [
                title,
                f"{reached(counted, name)} of {len(counted)}",
                _factor(counted, f"{name}_epochs", ".1f"),
                _factor(counted, f"{name}_flops", ".3g"),
                plain(mean_and_range(counted, f"{name}_map").value, ".2%"),
                plain(mean_and_range(counted, f"{name}_before").value, ".3g"),
                _factor(counted, f"{name}_times"),
                _factor(counted, f"{name}_all"),
            ]
        )
    columns = [
        "way",
        "reached",
        "epochs",
        "operations to the threshold",
        "share of the map",
        "prior cost: teacher and its latents",
        "×, without the prior cost",
        "×, with it",
    ]
    title = (
        f"Costs to the threshold: geometric means [95% intervals] over the {len(counted)} of {seeds} seeds that count"
    )
    return Table(title, columns, rows)


def _factor(results: Sequence[Result], name: str, shape: str = ".2f") -> str:
    """A geometric mean with its interval, unless that excludes nothing."""
    found = geometric_mean_and_interval(results, name)
    if np.isnan(found.value):
        return "–"
    if found.high > UNINFORMATIVE * found.low:
        return f"{found.value:{shape}} [any]"
    return f"{found.value:{shape}} [{found.low:{shape}}, {found.high:{shape}}]"


def accuracy_figure(results: Sequence[Result], ways: Ways, title: str) -> Curves:
    """Accuracy by epochs, by operations and, if there is a prior cost, by operations including it."""
    units: dict[str, Callable[[Result, str], np.ndarray]] = {"epochs": _epochs, "operations": _operations}
    if any(mean_and_range(results, f"{name}_before").value > 0 for name in ways):
        units["operations, with the teacher's"] = _operations_with_prior
    panels = []
    for unit, scale in units.items():
        lines = []
        for name, label in ways.items():
            there = [result for result in results if name in result.record.get("curves", {})]
            if there:
                lines.append(_mean_curve(there, name, label, scale))
        panels.append(CurvePanel([*lines, *_reference_lines(results, lines)], f"by {unit}", x_label=unit))
    majority = mean_and_range(results, "majority").value
    return Curves(
        title=title,
        y_label="probe accuracy, held out",
        panels=panels,
        note=f"Held-out groups; means over seeds with the lowest and highest as bands. Majority class: {majority:.3f}.",
    )


def _reference_lines(results: Sequence[Result], lines: Sequence[Curve]) -> list[Curve]:
    end = max(max(map(float, line.x)) for line in lines)
    lowest = min(min(map(float, line.low or line.y)) for line in lines)
    found = []
    for name, key in (("threshold", "threshold"), ("majority class", "majority")):
        value = mean_and_range(results, key).value
        if value >= lowest - MAX_GAP:
            found.append(Curve(name, [0.0, end], [value, value], dash=True))
    return found


def _epochs(result: Result, name: str) -> np.ndarray:
    return np.array(result.record["curves"][name])[:, 0] / result.record["epoch"]


def _operations(result: Result, name: str) -> np.ndarray:
    per_step = result.value(f"{name}_flops") / (result.value(f"{name}_epochs") * result.record["epoch"])
    return np.array(result.record["curves"][name])[:, 0] * per_step


def _operations_with_prior(result: Result, name: str) -> np.ndarray:
    return _operations(result, name) + result.value(f"{name}_before")


def _mean_curve(results: Sequence[Result], name: str, label: str, scale: Callable[[Result, str], np.ndarray]) -> Curve:
    """Checkpoints are the same for all seeds, and so is the cost of a step, except for the teacher's."""
    y = np.stack([np.array(result.record["curves"][name])[:, 1] for result in results])
    x = np.stack([scale(result, name) for result in results]).mean(0)
    return Curve(label, x.tolist(), y.mean(0).tolist(), low=y.min(0).tolist(), high=y.max(0).tolist())
