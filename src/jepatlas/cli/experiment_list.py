"""The list of experiments: claim, published figure and what was last measured in a line each; or some in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jepatlas.cli.options import say
from jepatlas.experiments import EXPERIMENTS, Experiment, last_record
from jepatlas.experiments.engine.publishing import SYMBOLS

__all__ = ["show_experiments"]

NAME = max(map(len, EXPERIMENTS)) + 2  # width of the column


def show_experiments(console: Console, chosen: Sequence[Experiment], out: Path, *, full: bool) -> list[dict[str, Any]]:
    """Show them, and return what was shown as plain data."""
    entries = [_entry(experiment, out) for experiment in chosen]
    for experiment, entry in zip(chosen, entries, strict=True):
        if full:
            _detail(console, experiment, entry)
        else:
            console.print(_lines(entry, console.width), no_wrap=True)
    if not full:
        say(console, "In full: jepatlas reproduce --list NAME")
    return entries


def _entry(experiment: Experiment, out: Path) -> dict[str, Any]:
    record = last_record(experiment.name, out)
    about, made = (record["about"], record["provenance"]) if record else ({}, {})
    last = {key: about.get(key) for key in ("outcome", "sentence", "short", "scale")} | {"trials": made.get("trials")}
    return {"name": experiment.name, "claim": experiment.claim.statement, "published": experiment.claim.measured} | last


def _lines(entry: dict[str, Any], width: int) -> Text:
    here = "not yet measured"
    if entry["outcome"]:
        here = f"{SYMBOLS[entry['outcome']]} {entry['outcome']}: {entry['short'] or entry['sentence']}"
    lines = {entry["name"]: entry["claim"], "  published": entry["published"] or "no figure", "  here": here}
    return Text("\n".join(f"{name:<{NAME}}{_cut(words, width - NAME)}" for name, words in lines.items()))


def _cut(words: str, width: int) -> str:
    """As much as fits a line, to the end of a word.

    >>> _cut("as much as fits", 12), _cut("as much as fits", 15)
    ('as much as …', 'as much as fits')
    """
    return words if len(words) <= width else words[: width - 1].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def _detail(console: Console, experiment: Experiment, entry: dict[str, Any]) -> None:
    claim = experiment.claim
    here = (
        "not yet"
        if entry["outcome"] is None
        else (f"{SYMBOLS[entry['outcome']]} {entry['outcome']} ({entry['scale']}). {entry['sentence']}")
    )
    parts = {
        "Claim": claim.statement,
        "Source": claim.source,
        "Proven": claim.proven,
        "Assumed": claim.assumed,
        "Published": claim.measured,
        "Here": here,
        "Trials": entry["trials"],
    }
    console.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
    for name, text in parts.items():
        if text:
            console.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 2)))
    console.print()
