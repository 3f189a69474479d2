"""The list of experiments: one line each, or some of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from jepatlas.experiments import EXPERIMENTS, Experiment, last_record
from jepatlas.experiments.claims import SYMBOLS
from jepatlas.verbs.options import say

__all__ = ["show_experiments"]

NAME, OUTCOME = max(map(len, EXPERIMENTS)), max(map(len, SYMBOLS)) + 2  # widths of columns


def show_experiments(console: Console, chosen: Sequence[Experiment], out: Path, *, full: bool) -> list[dict[str, Any]]:
    """Show them, and return what was shown as plain data."""
    entries = [_entry(experiment, out) for experiment in chosen]
    for experiment, entry in zip(chosen, entries, strict=True):
        if full:
            _detail(console, experiment, entry)
        else:
            console.print(_line(experiment, entry), no_wrap=True, overflow="ellipsis")
    if not full:
        say(console, "In full: jepatlas reproduce --list NAME")
    return entries


def _entry(experiment: Experiment, out: Path) -> dict[str, Any]:
    record = last_record(experiment.name, out)
    about, made = (record["about"], record["provenance"]) if record else ({}, {})
    last = {key: about.get(key) for key in ("outcome", "sentence", "short", "scale")} | {"trials": made.get("trials")}
    return {"name": experiment.name, "claim": experiment.claim.statement, "published": experiment.claim.measured} | last


def _line(experiment: Experiment, entry: dict[str, Any]) -> Text:
    here = f"{SYMBOLS[entry['outcome']]} {entry['outcome']}" if entry["outcome"] else "not yet"
    words = entry["short"] or entry["sentence"] or experiment.title
    return Text(f"{experiment.name:<{NAME}}  {here:<{OUTCOME}}  {words}")


def _detail(console: Console, experiment: Experiment, entry: dict[str, Any]) -> None:
    claim = experiment.claim
    here = "not yet" if entry["outcome"] is None else (
        f"{SYMBOLS[entry['outcome']]} {entry['outcome']} ({entry['scale']}). {entry['sentence']}"
    )  # fmt: skip
    parts = {"Claim": claim.statement, "Source": claim.source, "Proven": claim.proven, "Assumed": claim.assumed,
             "Published": claim.measured, "Here": here, "Trials": entry["trials"]}  # fmt: skip
    console.print(Text(f"{experiment.name}: {experiment.title}", style="bold"))
    for name, text in parts.items():
        if text:
            console.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 2)))
    console.print()
