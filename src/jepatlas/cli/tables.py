"""Tables of records, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill, indent
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from jepatlas.cli.options import say
from jepatlas.core.figures import Table as RecordTable
from jepatlas.core.figures import as_table

__all__ = ["show_table"]


def show_table(console: Console, table: RecordTable | Mapping[str, Any]) -> None:
    """A table where it fits the terminal; else a paragraph for each row, so that no number is cut."""
    table = as_table(table)
    shown = Table(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    for column in table.columns:
        shown.add_column(Text(str(column)), no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(str(value)) for value in row))
    if Measurement.get(console, console.options.update(max_width=10_000), shown).maximum <= console.width:
        return console.print(shown)
    say(console, f"{table.title}:")
    for row in table.rows:
        # a column and its value stay together: textwrap does not break at these spaces
        parts = [f"{name} {value}".replace(" ", "\u00a0") for name, value in zip(table.columns, row, strict=True)]
        wrapped = fill("; ".join(parts), console.width - 4, subsequent_indent="  ", break_long_words=False)
        say(console, indent(wrapped.replace("\u00a0", " "), "  "))
    return None
