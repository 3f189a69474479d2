"""Command lines from dataclasses, and where answers go. Torch stays out: a verb that needs none is quick."""

from __future__ import annotations

import json
import math
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

from jepatlas.core.files import finite, write_json
from jepatlas.core.records import Verdict

__all__ = ["console_for", "emit", "parse", "progress_bar", "say", "say_advice", "verdict_table"]

T = TypeVar("T")
PASSED = {True: "[green]✓", False: "[red]✗", None: "·"}


def parse(cls: type[T], verb: str, words: list[str], default: T | None = None) -> T:
    """Options of a verb; tyro prints help and usage errors itself and exits with code 0 or 2."""
    options: Any = {} if default is None else {"default": default}
    return tyro.cli(cls, args=words, prog=f"jepatlas {verb}", config=(tyro.conf.AvoidSubcommands,), **options)


def console_for(json_path: str | None) -> Console:
    """Standard output for people, unless JSON goes there."""
    return _Console(stderr=json_path == "-")


class _Console(Console):
    """A console that leaves a closed pipe to the command line; rich would exit with 1, as if a check had failed."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 (rich calls this while it handles the BrokenPipeError)


def say(console: Console, text: str) -> None:
    """One line as it is: a path in it is neither broken nor taken for markup."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def emit(json_path: str | None, answer: dict[str, Any]) -> None:
    """Write the answer as JSON where it was asked for."""
    if json_path == "-":
        json.dump(finite(answer), sys.stdout, indent=2, allow_nan=False)
        print()
    elif json_path is not None:
        write_json(Path(json_path), answer)


@contextmanager
def progress_bar(console: Console, what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A bar in a terminal, nothing anywhere else; what it yields moves it by one."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def verdict_table(title: str, verdicts: typing.Iterable[Verdict]) -> Table:
    columns = (Column("", overflow="fold"), "value [95% interval]", "null", "wanted", "")
    table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD)
    for v in verdicts:
        wanted = "" if v.threshold is None else f"{'≥' if v.direction == 'higher' else '≤'} {v.threshold:.3g}"
        null = "" if v.null is None else f"{v.null:.3g}"
        table.add_row(v.name, _interval(v), null, wanted, PASSED[v.passed])
    return table


def say_advice(console: Console, verdicts: typing.Iterable[Verdict]) -> None:
    """What to do about each check that failed."""
    for verdict in verdicts:
        if verdict.passed is False:
            say(console, f"✗ {verdict.name}: {verdict.advice}")


def _interval(v: Verdict) -> str:
    """Counts as counts; what has no interval, or is infinite, without one."""
    if v.value == v.low == v.high:
        return f"{v.value:.0f}" if float(v.value).is_integer() or math.isinf(v.value) else f"{v.value:.4f}"
    return rf"{v.value:.4f} \[{v.low:.4f}, {v.high:.4f}]"
