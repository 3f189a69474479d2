"""Who first comes to what training from scratch ends with, in epochs and in operations: a race of ways to train.

    epochs   until a probe on held-out groups reaches the threshold, at the resolution of the checkpoints
    times    operations until then, map included, over those of the first way
    all      the same with what was paid before: the teacher's training, and its latents of the shared states

A way that does not get there is charged all it had, which is less than it would need; `reached` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jepatlas.base.records import Estimate
from jepatlas.experiments.experiment import Result
from jepatlas.experiments.tables import factor_over_seeds, over_seeds
from jepatlas.social import Cost, first_to

__all__ = ["Runner", "costs_table", "curves_figure", "faster", "raced", "reached", "runs_table", "said"]

Curve = list[tuple[int, float]]
Scaled = Callable[[Result, str], np.ndarray]


@dataclass(frozen=True)
class Runner:
    """One way to train: a probe's accuracy as it goes, what a step costs, and what was paid before it."""

    curve: Curve
    cost: Cost
    before: float = 0.0


def raced(runners: Mapping[str, Runner], threshold: float | None, epoch: float) -> dict[str, Estimate]:
    """All measures of all ways; the first way sets the threshold where none is given. `epoch` is in steps."""
    first, *_ = runners
    goal = runners[first].curve[-1][1] if threshold is None else threshold
    found = {"threshold": goal, "untrained": runners[first].curve[0][1]}
    found["gain"] = goal - found["untrained"]
    spent = {name: _spent(runner, goal) for name, runner in runners.items()}
    for name, runner in runners.items():
        steps, reached = spent[name]
        flops = steps * runner.cost.step
        found |= {
            f"{name}_reached": float(reached),
            f"{name}_epochs": steps / epoch,
            f"{name}_ratio": steps / spent[first][0],
            f"{name}_flops": flops,
            f"{name}_times": flops / (spent[first][0] * runners[first].cost.step),
            f"{name}_map": steps * runner.cost.map / flops,
            f"{name}_before": runner.before,
            f"{name}_all": (flops + runner.before) / (spent[first][0] * runners[first].cost.step),
            f"{name}_final": runner.curve[-1][1],
        }
    return {name: Estimate(value, value, value, 1) for name, value in found.items()}


def _spent(runner: Runner, goal: float) -> tuple[float, bool]:
    """Steps to the threshold, at least 1, or all there were."""
    steps = first_to(runner.curve, goal)
    return (max(1.0, steps), True) if np.isfinite(steps) else (float(runner.curve[-1][0]), False)


def faster(results: Sequence[Result], name: str, measure: str) -> bool:
    """Whether it got there with every seed, and the 95% interval of the mean factor lies below 1."""
    return reached(results, name) == len(results) and factor_over_seeds(results, f"{name}_{measure}").high < 1


def reached(results: Sequence[Result], name: str) -> int:
    """With how many seeds it got there; a run that was lost did not."""
    return sum(r.value(f"{name}_reached") == 1 for r in results)


def said(results: Sequence[Result], name: str, title: str) -> str:
    """Epochs, operations with and without what was paid before, and how many seeds got there."""
    got = reached(results, name)
    times, everything = (factor_over_seeds(results, f"{name}_{key}") for key in ("times", "all"))
    paid = "" if over_seeds(results, f"{name}_before").value == 0 else f", {everything.value:.2f}× with the teacher's"
    return (f"{title}: {over_seeds(results, f'{name}_epochs').value:.1f} epochs, {_factor(times)} of the operations"
            f"{paid} ({got} of {len(results)} seeds)")  # fmt: skip


def _factor(found: Estimate) -> str:
    return f"{found.value:.2f}× [{found.low:.2f}, {found.high:.2f}]"


def runs_table(results: Sequence[Result], ways: Mapping[str, str], published: Mapping[str, tuple[str, str]]) -> Any:
    """One row for each way and seed; what is published stands in the last columns."""
    rows = [
        [title, r.at["seed"], r.record.get("ways", {}).get(name, r.status), _plain(r.value(f"{name}_final")),
         _plain(r.value(f"{name}_directions"), ".1f"),
         _plain(r.value("threshold")), "yes" if r.value(f"{name}_reached") == 1 else "no",
         _plain(r.value(f"{name}_epochs"), ".1f"), _plain(r.value(f"{name}_times"), ".2f"),
         *published.get(name, ("", ""))]
        for name, title in ways.items() for r in results
    ]  # fmt: skip
    columns = ["way", "seed", "run", "accuracy at the end", "directions", "threshold", "reached", "epochs",
               "× operations", "published epochs", "published ×"]  # fmt: skip
    return {"title": "Epochs and operations until a probe reaches the threshold on held-out groups", "columns": columns,
            "rows": rows}  # fmt: skip


def costs_table(results: Sequence[Result], ways: Mapping[str, str]) -> Any:
    """What the operations are made of, means over seeds."""
    rows = [
        [title, *(_plain(over_seeds(results, f"{name}_{key}").value, shape) for key, shape in
                  (("flops", ".3g"), ("map", ".2%"), ("before", ".3g"), ("times", ".2f"), ("all", ".2f")))]
        for name, title in ways.items()
    ]  # fmt: skip
    columns = ["way", "operations to the threshold", "of which the map", "paid before: teacher and its latents",
               "×, without what was paid before", "×, with it"]  # fmt: skip
    return {"title": "Costs, means over seeds", "columns": columns, "rows": rows}


def curves_figure(results: Sequence[Result], ways: Mapping[str, str], title: str) -> dict[str, Any]:
    """Accuracy by epochs, by operations and, where something was paid before, with that: means over seeds, with the
    lowest and the highest."""
    units = {"epochs": _epochs, "operations": _operations}
    if any(over_seeds(results, f"{name}_before").value > 0 for name in ways):
        units["operations, with the teacher's"] = lambda result, name: (
            _operations(result, name) + result.value(f"{name}_before")
        )
    panels = [{"title": f"by {unit}", "x_label": unit,
               "series": [_mean_curve(results, name, label, scale) for name, label in ways.items()
                          if any(name in r.record.get("curves", {}) for r in results)]}
              for unit, scale in units.items()]  # fmt: skip
    return {"kind": "curves", "title": title, "y_label": "probe accuracy, held out", "panels": panels,
            "note": "Held-out groups; means over seeds, with the lowest and the highest as bands."}  # fmt: skip


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


def _plain(value: float, shape: str = ".3f") -> str:
    return "–" if np.isnan(value) else f"{value:{shape}}"
