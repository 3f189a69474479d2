"""Output of commands: text for the terminal, and JSON for programs."""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill, indent
from time import monotonic
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress, TaskID
from rich.table import Column, Table
from rich.text import Text

from jepatlas.core.figures import Table as RecordTable
from jepatlas.core.files import finite, write_json
from jepatlas.core.progress import listening
from jepatlas.core.records import Status, Verdict
from jepatlas.core.verdict_names import plain_name
from jepatlas.results import count_states

__all__ = [
    "console_for",
    "defer_interrupts",
    "emit",
    "loops_shown",
    "named",
    "progress_bar",
    "say",
    "say_advice",
    "show_table",
    "show_verdicts",
    "verdict_table",
]

MARKS: dict[Status, str] = {"passed": "[green]✓", "failed": "[red]✗", "undecided": "[yellow]?", "informational": "·"}

NUMBERS = 53  # columns that the numbers of a table of verdicts take
LONG = 2.0  # seconds: loops that take longer have a bar
SIGNS: dict[Status, str] = {"failed": "✗", "undecided": "?"}


def console_for(json_path: str | None) -> Console:
    """Standard output, or standard error if JSON goes to standard output."""
    return _Console(stderr=json_path == "-")


class _Console(Console):
    """A console that lets BrokenPipeError pass. By default rich exits with code 1, which means a failed check."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)


def say(console: Console, text: str) -> None:
    """Print text as it is, without markup or line breaks, so that paths can be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def emit(json_path: str | None, answer: dict[str, Any]) -> None:
    """Write the answer as JSON to a file, or to standard output for '-'."""
    if json_path == "-":
        json.dump(finite(answer), sys.stdout, indent=2, allow_nan=False)
        print()
    elif json_path is not None:
        write_json(Path(json_path), answer)


@contextmanager
def progress_bar(console: Console, what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar in a terminal, and nothing elsewhere. The function that it yields advances it by one."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def loops_shown(console: Console) -> Iterator[None]:
    """Bars with the remaining time for the loops in this block that take more than two seconds, in a terminal.

    Of nested loops, the outermost one that is long is shown.
    """
    begun: dict[str, float] = {}
    shown: tuple[str, Progress, TaskID] | None = None

    def show(name: str, done: int, total: int) -> None:
        nonlocal shown
        if done == 1:
            begun[name] = monotonic()
        expected = (monotonic() - begun.get(name, monotonic())) * total / done
        if shown is None and expected > LONG and done < total:
            bar = Progress(console=console, transient=True)
            bar.start()
            shown = (name, bar, bar.add_task(name, total=total))
        if shown is not None and shown[0] == name:
            shown[1].update(shown[2], completed=done, total=total)
            if done == total:
                shown[1].stop()
                shown = None

    if not console.is_terminal:
        yield
        return
    try:
        with listening(show):
            yield
    finally:
        if shown is not None:
            shown[1].stop()


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Deliver Ctrl-C only after the block: libraries that are interrupted during import fail unpredictably."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def show_verdicts(console: Console, title: str, verdicts: Iterable[Verdict], *, full: bool) -> None:
    """Verdicts with a threshold, or all of them, and advice for those that failed or are undecided."""
    verdicts = list(verdicts)
    shown = [verdict for verdict in verdicts if full or verdict.threshold is not None]
    counts = ", ".join(f"{count} {state}" for state, count in count_states(verdicts).items() if count)
    console.print(verdict_table(f"{title}: {counts}" if counts else title, shown, console.width))
    say_advice(console, shown)
    hidden = len(verdicts) - len(shown)
    if hidden:
        say(console, f"{hidden} further metrics have no threshold (show with --full).")


def verdict_table(title: str, verdicts: Sequence[Verdict], width: int) -> Table:
    """Verdicts by their plain names, beside which their codes are shown if a terminal of this width has room."""
    names = [named(verdict.name) for verdict in verdicts]
    if max((len(name) for name in names), default=0) > width - NUMBERS:
        names = [Text(plain_name(verdict.name)) for verdict in verdicts]
    columns = (Column("", overflow="fold"), Column("value [95% interval]", no_wrap=True), "null", "wanted", "")
    table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name, verdict in zip(names, verdicts, strict=True):
        null = "" if verdict.null is None else f"{verdict.null:.3g}"
        table.add_row(name, _interval(verdict), null, _wanted(verdict), MARKS[verdict.status])
    return table


def named(code: str) -> Text:
    """The plain name of a verdict, and its code in dim print."""
    plain = plain_name(code)
    return Text(code) if plain == code else Text.assemble(plain, " ", (code, "dim"))


def say_advice(console: Console, verdicts: Iterable[Verdict]) -> None:
    """What to do about each check that failed or is undecided."""
    advice: dict[tuple[Status, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.status in SIGNS:
            advice.setdefault((verdict.status, verdict.advice), []).append(plain_name(verdict.name))
    for (status, text), names in advice.items():
        say(console, f"{SIGNS[status]} {' and '.join(names)}: {text}")


def _wanted(verdict: Verdict) -> str:
    if verdict.threshold is None:
        return ""
    relation = "≥" if verdict.direction == "higher" else "≤"
    return f"{relation} {verdict.threshold:.3g}"


def _interval(verdict: Verdict) -> str:
    """Value and interval; the value alone if it has no interval, without decimals if it is a count."""
    if not verdict.value == verdict.low == verdict.high:
        return rf"{verdict.value:.4f} \[{verdict.low:.4f}, {verdict.high:.4f}]"
    if float(verdict.value).is_integer() or math.isinf(verdict.value):
        return f"{verdict.value:.0f}"
    return f"{verdict.value:.4f}"


def show_table(console: Console, table: RecordTable) -> None:
    """A table of a record if it fits the terminal, otherwise a paragraph for each row, so that no number is cut."""
    shown = Table(title=table.title, title_justify="left", box=SIMPLE_HEAD)
    for column in table.columns:
        shown.add_column(Text(str(column)), no_wrap=True)
    for row in table.rows:
        shown.add_row(*(Text(str(value)) for value in row))
    if Measurement.get(console, console.options.update(max_width=10_000), shown).maximum <= console.width:
        console.print(shown)
        return
    say(console, f"{table.title}:")
    for row in table.rows:
        # A column and its value stay together: textwrap does not break at no-break spaces.
        parts = [f"{name} {value}".replace(" ", "\u00a0") for name, value in zip(table.columns, row, strict=True)]
        wrapped = fill("; ".join(parts), console.width - 4, subsequent_indent="  ", break_long_words=False)
        say(console, indent(wrapped.replace("\u00a0", " "), "  "))
