"""The chapter "Training": the loss and each of its terms over the steps, and the recipe they came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from jepatlas.core.errors import InputError
from jepatlas.reporting.chapters import Chapter

__all__ = ["outline", "read_training"]

POINTS = 1000


def read_training(folder: Path) -> Chapter | None:
    """The chapter of `metrics.jsonl` and `recipe.yaml`, or None where there is neither."""
    metrics, recipe = folder / "metrics.jsonl", folder / "recipe.yaml"
    rows = _read_lines(metrics) if metrics.is_file() else []
    text = _read_recipe(recipe) if recipe.is_file() else ""
    if not metrics.is_file() and not recipe.is_file():
        return None
    return Chapter(
        title="Training",
        source=metrics.name if metrics.is_file() else recipe.name,
        summary=_summary(rows) if metrics.is_file() else "",
        figures=(_figure(rows),) if rows else (),
        recipe=text,
    )


def outline(x: np.ndarray, y: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """At most `points` points of a curve: the lowest and the highest of each stretch, so that no spike is lost.

    >>> x, y = outline(np.arange(9000), np.where(np.arange(9000) == 4321, 50.0, 0.0))
    >>> len(x) <= 1000, y.max()
    (True, np.float64(50.0))
    """
    if len(y) <= points:
        return x, y
    stretches = np.array_split(np.arange(len(y)), (points - 2) // 2)
    extremes = [part[[y[part].argmin(), y[part].argmax()]] for part in stretches]
    keep = np.unique(np.concatenate([[0], *extremes, [len(y) - 1]]))
    return x[keep], y[keep]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    lines = path.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):  # a run that was killed, or is still at it; resuming mends it
                break
            raise InputError(f"{path}, line {number}, is not valid JSON ({error}). Was it cut short?") from error
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise InputError(f"{path}, line {number}, must be an object with a whole number 'step': {line:.80}")
        rows.append(row)
    return rows


def _read_recipe(path: Path) -> str:
    try:
        text = path.read_text()
        yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}") from error
    return text


def _number(value: Any) -> float | None:
    """The number, also when saved as "nan" or "inf"; None for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        return None
    return float(value)


def _figure(rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = list(dict.fromkeys(key for row in rows for key in row if key != "step"))
    keys.sort(key=lambda key: key != "loss")  # the loss first, then its terms as they were recorded
    panels, notes = [], []
    for key in keys:
        curve = [(row["step"], number) for row in rows if (number := _number(row.get(key))) is not None]
        if not curve:
            continue
        steps, values = np.array(curve, dtype=float).T
        finite = np.isfinite(values)
        if not finite.all():
            first = int(steps[~finite][0])
            notes.append(f"{key} was not finite at {(~finite).sum():,} recorded steps, first at step {first:,}.")
        x, y = outline(steps[finite], values[finite])
        series = {"name": key, "x": x.tolist(), "y": y.tolist()}
        if panels and key == f"{panels[-1]['title']}_null":  # what the term before would be where nothing is wrong
            panels[-1]["series"].append(series | {"dash": True})
        else:
            panels.append({"title": key, "series": [series], "log_y": _wide(y)})
    return {
        "kind": "curves",
        "title": "Loss and its terms",
        "x_label": "step",
        "panels": panels,
        "note": " ".join(notes),
    }


def _wide(y: np.ndarray) -> bool:
    """Whether a curve is positive and spans so much that only a logarithmic axis shows it."""
    return bool(len(y) and y.min() > 0 and y.max() / y.min() > 50)


def _summary(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No step was recorded."
    last = _number(rows[-1].get("loss"))
    end = f" The last recorded loss is {last:.4g}." if last is not None else ""
    return f"{len(rows):,} records from step {rows[0]['step']:,} to step {rows[-1]['step']:,}.{end}"
