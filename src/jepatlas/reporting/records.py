"""A run folder, read into chapters: training first, then `records/*.json` in the order of their names.

A record is `{"title", "summary", "provenance", "verdicts", "figures", "tables", "arrays"}`; all but the title are
optional, and further keys belong to whoever wrote them. `arrays` names a file beside the record; where `about` has a
`recipe`, it is shown as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jepatlas.core.arrays import read_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.files import read_json
from jepatlas.core.records import Verdict
from jepatlas.reporting.chapters import Chapter, Table
from jepatlas.reporting.training import read_training

__all__ = ["read_chapters", "read_record"]

NAMED = 5


def read_chapters(folder: Path | str) -> list[Chapter]:
    """All chapters of a run folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    training = read_training(folder)
    records = [read_record(path) for path in sorted((folder / "records").glob("*.json"))]
    if training is None and not records:
        raise InputError(
            f"{folder} is not a run folder: it has nothing to report. "
            "A run folder contains recipe.yaml, metrics.jsonl or records/*.json, at least one of them."
            f"{_below(folder)}"
        )
    return [training, *records] if training else records


def _below(folder: Path) -> str:
    """Folders in this one that have something, as 'reproduce' puts records by scale and sweeps put runs by name."""
    runs = [path.parent for name in ("recipe.yaml", "metrics.jsonl") for path in folder.glob(f"*/{name}")]
    found = sorted({*runs, *(path.parents[1] for path in folder.glob("*/records/*.json"))})
    if not found:
        return ""
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f" These in it are: {', '.join(map(str, found[:NAMED]))}{more}. Report one of them."


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
        figures=tuple(_expect(item, dict, f"{path}: a figure") for item in part("figures", list, [])),
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


def _table(path: Path, item: Any) -> Table:
    data: Mapping[str, Any] = _expect(item, dict, f"{path}: a table")
    title = str(data.get("title", ""))
    columns = _expect(data.get("columns"), list, f"{path}: 'columns' of table '{title}'")
    rows = _expect(data.get("rows"), list, f"{path}: 'rows' of table '{title}'")
    for number, row in enumerate(rows):
        cells = _expect(row, list, f"{path}: row {number} of table '{title}'")
        if len(cells) != len(columns):
            raise InputError(
                f"{path}: row {number} of table '{title}' has {len(cells)} cells for {len(columns)} columns."
            )
    return Table(title, tuple(map(str, columns)), tuple(map(tuple, rows)))


def _arrays(path: Path, name: str | None) -> Mapping[str, Any]:
    if name is None:
        return {}
    if Path(name).name != name:  # a record sent by someone else must not reach for other files
        raise InputError(f"{path}: 'arrays' must name a file beside the record, but it is '{name}'.")
    return read_arrays(path.with_name(name))
