"""A record of an energy, as the terminal shows it."""

from __future__ import annotations

from rich.console import Console

from jepatlas.cli.options import say, verdict_table
from jepatlas.core.records import Record

__all__ = ["show"]


def show(console: Console, record: Record, *, full: bool) -> None:
    """The summary, what was judged, and of what failed the offender."""
    say(console, record.summary)
    shown = [verdict for verdict in record.verdicts if full or verdict.threshold is not None]
    console.print(verdict_table(record.title, shown))
    for verdict in shown:
        if verdict.passed is False:
            say(console, f"{verdict.name}: {verdict.advice}")
    if hidden := len(record.verdicts) - len(shown):
        say(console, f"{hidden} more numbers inform: --full shows them.")
