"""Tables with one row per run: its place in the grid, how it ended, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jepatlas.core.figures import Table
from jepatlas.experiments.engine.experiment import Result
from jepatlas.experiments.engine.seed_tables import cell, plain

__all__ = ["Cell", "number", "numbers", "run_table"]

Cell = str | int | float
Columns = Mapping[str, str | Callable[[Result], Cell]]


def run_table(
    title: str, results: Sequence[Result], places: Columns, measured: Columns, *, status: str = "status"
) -> Table:
    """A row for every run, unfinished ones included.

    Columns by title: `places` are coordinates of the grid, `measured` are verdicts, which are shown with their
    intervals. Either may be a function of the result. `status` is the title of the column between them.
    """
    rows = []
    for result in results:
        row = [result.at[place] if isinstance(place, str) else place(result) for place in places.values()]
        row.append(result.status)
        for column in measured.values():
            row.append(cell(result.estimate(column)) if isinstance(column, str) else column(result))
        rows.append(row)
    return Table(title, [*places, status, *measured], rows)


def number(name: str, shape: str = ".3f") -> Callable[[Result], str]:
    """A column of the values of a verdict, without intervals."""
    return lambda result: plain(result.value(name), shape)


def numbers(names: Mapping[str, str], shape: str = ".3f") -> dict[str, Callable[[Result], str]]:
    """Columns of the values of verdicts, from titles by verdict."""
    return {title: number(name, shape) for name, title in names.items()}
