"""Reading of run folders into chapters: training first, then `records/*.json` in the order of their names.

A record is `{"title", "summary", "provenance", "verdicts", "figures", "tables", "arrays", "about"}`. All but the title
are optional, and further keys are ignored. `arrays` names a file beside the record; `about` may contain a `recipe`,
which is shown as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.figures import Curve, CurvePanel, Curves, Figure, Table, figure_from_json, table_from_json
from jepatlas.core.files import read_json
from jepatlas.core.parsing import parse_json, parse_yaml
from jepatlas.core.records import Verdict

__all__ = ["POINTS", "Chapter", "envelope", "overlaid_curves", "read_chapters", "read_record"]

TRAINING = "Training"
LISTED = 5  # folders named in an error
POINTS = 1000  # points of a drawn training curve
LOGARITHMIC = 50  # ratio of largest to smallest value from which on a logarithmic axis is used


@dataclass(frozen=True)
class Chapter:
    """One record of a run; `source` is its file, relative to the run folder."""

    title: str
    source: str
    summary: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    recipe: str = ""


def read_chapters(folder: Path | str) -> list[Chapter]:
    """All chapters of a run folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    training = _read_training(folder)
    records = [read_record(path) for path in sorted((folder / "records").glob("*.json"))]
    if training is None and not records:
        raise InputError(
            f"{folder} is not a run folder: it has nothing to report. "
            f"A run folder contains recipe.yaml, metrics.jsonl or records/*.json.{_run_folders_below(folder)}"
        )
    return [training, *records] if training else records


def _run_folders_below(folder: Path) -> str:
    """A hint at run folders in this one, as `reproduce` and sweeps leave them."""
    runs = [path.parent for name in ("recipe.yaml", "metrics.jsonl") for path in folder.glob(f"*/{name}")]
    found = sorted({*runs, *(path.parents[1] for path in folder.glob("*/records/*.json"))})
    if not found:
        return ""
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return f" It contains these run folders: {', '.join(map(str, found[:LISTED]))}{more}. Report one of them."


def read_record(path: Path) -> Chapter:
    """One record and the arrays beside it."""
    record = _expect(read_json(path), dict, f"{path}: the record")

    def part(key: str, kind: type, default: Any) -> Any:
        value = record.get(key)
        return default if value is None else _expect(value, kind, f"{path}: '{key}'")

    if "title" not in record:
        raise InputError(f"{path}: a record needs a 'title'.")
    return Chapter(
        title=part("title", str, "Untitled"),
        source=f"records/{path.name}",
        summary=part("summary", str, ""),
        provenance=part("provenance", dict, {}),
        verdicts=tuple(_verdict(path, item) for item in part("verdicts", list, [])),
        figures=tuple(_figure(path, item) for item in part("figures", list, [])),
        tables=tuple(_table(path, item) for item in part("tables", list, [])),
        arrays=_arrays(path, part("arrays", str, None)),
        recipe=_expect(part("about", dict, {}).get("recipe", ""), str, f"{path}: the recipe"),
    )


def _expect(value: Any, kind: type, what: str) -> Any:
    names = {dict: "an object", list: "a list", str: "text"}
    if not isinstance(value, kind):
        raise InputError(f"{what} must be {names[kind]}, but it is {value!r:.80}.")
    return value


_VERDICT_TYPES = {
    "name": str,
    "value": float,
    "low": float,
    "high": float,
    "n": int,
    "null": float | None,
    "threshold": float | None,
    "passed": bool | None,
    "advice": str,
}


def _verdict(path: Path, item: Any) -> Verdict:
    data = _expect(item, dict, f"{path}: a verdict")
    try:
        verdict = Verdict.from_json(data)
    except (TypeError, ValueError) as error:
        fields = ", ".join(Verdict.__dataclass_fields__)
        raise InputError(f"{path}: {data!r:.80} is not a verdict ({error}). A verdict has {fields}.") from error
    wrong = [key for key, kind in _VERDICT_TYPES.items() if not isinstance(getattr(verdict, key), kind)]
    if verdict.direction not in ("higher", "lower"):
        wrong.append("direction")
    if wrong:
        found = ", ".join(f"'{key}' is {getattr(verdict, key)!r}" for key in wrong)
        raise InputError(f"{path}: in verdict '{verdict.name}', {found}. Write it with Verdict.to_json.")
    return verdict


def _figure(path: Path, item: Any) -> Figure:
    data = _expect(item, dict, f"{path}: a figure")
    try:
        return figure_from_json(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _table(path: Path, item: Any) -> Table:
    data = _expect(item, dict, f"{path}: a table")
    try:
        table = table_from_json(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    where = f"of table '{table.title}'"
    columns = _expect(table.columns, list, f"{path}: 'columns' {where}")
    for number, row in enumerate(_expect(table.rows, list, f"{path}: 'rows' {where}")):
        cells = _expect(row, list, f"{path}: row {number} {where}")
        if len(cells) != len(columns):
            raise InputError(f"{path}: row {number} {where} has {len(cells)} cells for {len(columns)} columns.")
    return table


def _arrays(path: Path, name: str | None) -> Mapping[str, Any]:
    if name is None:
        return {}
    if Path(name).name != name:  # a record from someone else must not name files elsewhere on this machine
        raise InputError(f"{path}: 'arrays' must name a file beside the record, but it is '{name}'.")
    return read_arrays(path.with_name(name))


def _read_training(folder: Path) -> Chapter | None:
    """The chapter of `metrics.jsonl` and `recipe.yaml`; None if neither exists."""
    metrics, recipe = folder / "metrics.jsonl", folder / "recipe.yaml"
    if not metrics.is_file() and not recipe.is_file():
        return None
    text = _read_recipe(recipe) if recipe.is_file() else ""
    if not metrics.is_file():
        return Chapter(TRAINING, recipe.name, recipe=text)
    rows = _read_metrics(metrics)
    return Chapter(
        title=TRAINING,
        source=metrics.name,
        summary=_training_summary(rows),
        figures=(_training_figure(rows),) if rows else (),
        recipe=text,
    )


def overlaid_curves(runs: Mapping[str, Sequence[Chapter]]) -> Curves | None:
    """The training curves of several runs: a panel for each quantity that at least two runs have; None without any."""
    panels: dict[str, list[Curve]] = {}
    logarithmic: dict[str, bool] = {}
    for name, chapters in runs.items():
        for figure in (figure for chapter in chapters if chapter.title == TRAINING for figure in chapter.figures):
            for panel in figure.panels or () if isinstance(figure, Curves) else ():
                panels.setdefault(panel.title, []).append(replace(panel.series[0], name=name))
                logarithmic[panel.title] = logarithmic.get(panel.title, True) and bool(panel.log_y)
    shared = [
        CurvePanel(series, title=title, log_y=logarithmic[title]) for title, series in panels.items() if len(series) > 1
    ]
    return Curves(title="Training curves of the runs", x_label="step", panels=shared) if shared else None


def envelope(x: np.ndarray, y: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """At most `points` points of a curve: the minimum and maximum of each segment, so that no spike is lost.

    >>> x, y = envelope(np.arange(9000), np.where(np.arange(9000) == 4321, 50.0, 0.0))
    >>> len(x) <= 1000, y.max()
    (True, np.float64(50.0))
    """
    if len(y) <= points:
        return x, y
    segments = np.array_split(np.arange(len(y)), (points - 2) // 2)
    extremes = [part[[y[part].argmin(), y[part].argmax()]] for part in segments]
    keep = np.unique(np.concatenate([[0], *extremes, [len(y) - 1]]))
    return x[keep], y[keep]


def _read_metrics(path: Path) -> list[dict[str, Any]]:
    rows = []
    lines = path.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line, f"{path}, line {number},")
        except InputError:
            if number == len(lines):  # the run was killed or is still running
                break
            raise
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise InputError(f"{path}, line {number}, must be an object with an integer 'step': {line:.80}")
        rows.append(row)
    return rows


def _read_recipe(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not valid YAML: {error}") from error
    parse_yaml(text, path)
    return text


def _number(value: Any) -> float | None:
    """The number, including those saved as "nan" or "inf"; None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and value not in ("nan", "inf", "-inf"):
        return None
    return float(value)


def _training_figure(rows: list[dict[str, Any]]) -> Curves:
    """One panel for the loss and for each of its terms; a term's null is a dashed line in its panel."""
    keys = list(dict.fromkeys(key for row in rows for key in row if key != "step"))
    keys.sort(key=lambda key: key != "loss")  # the loss first, then its terms as they were recorded
    panels: dict[str, list[Curve]] = {}
    logarithmic: dict[str, bool] = {}
    notes = []
    for key in keys:
        steps, values = _recorded(rows, key)
        if not len(steps):
            continue
        finite = np.isfinite(values)
        if not finite.all():
            first = int(steps[~finite][0])
            notes.append(f"{key} was not finite at {(~finite).sum():,} recorded steps, first at step {first:,}.")
        x, y = envelope(steps[finite], values[finite])
        last = next(reversed(panels), None)
        if last is not None and key == f"{last}_null":
            panels[last].append(Curve(key, x.tolist(), y.tolist(), dash=True))
        else:
            panels[key] = [Curve(key, x.tolist(), y.tolist())]
            logarithmic[key] = _needs_log(y)
    return Curves(
        title="Loss and its terms",
        x_label="step",
        panels=[CurvePanel(series, title=key, log_y=logarithmic[key]) for key, series in panels.items()],
        note=" ".join(notes),
    )


def _recorded(rows: list[dict[str, Any]], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values at which a number was recorded under this key."""
    steps = []
    values = []
    for row in rows:
        number = _number(row.get(key))
        if number is not None:
            steps.append(row["step"])
            values.append(number)
    return np.array(steps, dtype=float), np.array(values, dtype=float)


def _needs_log(y: np.ndarray) -> bool:
    return bool(len(y) and y.min() > 0 and y.max() / y.min() > LOGARITHMIC)


def _training_summary(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No step was recorded."
    last = _number(rows[-1].get("loss"))
    end = f" The last recorded loss is {last:.4g}." if last is not None else ""
    return f"{len(rows):,} records from step {rows[0]['step']:,} to step {rows[-1]['step']:,}.{end}"
