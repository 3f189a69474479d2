"""docs/benchmarks.md, from docs/benchmarks.json alone: no figure is typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["benchmarks_page"]

HEAD = """# Benchmarks

CPU time on one thread and peak memory, two ways of doing the same thing in turns of one run, so that both meet the same
noise; `make bench` makes this page. The last column is the median of the ratios of neighbouring turns.

"""


def benchmarks_page(results: Mapping[str, Any]) -> str:
    return HEAD + "\n".join(_section(name, suite) for name, suite in results.items())


def _section(name: str, suite: Mapping[str, Any]) -> str:
    rows = []
    for row in suite["rows"]:
        first, second = (f"{float(row[key]):.4g} {row['unit']}" for key in ("baseline", "ours"))
        rows.append(f"| {row['name']} | {first} | {second} | {float(row['ratio']):.3g} |")
    made = f"jepatlas {suite['version']}, commit {suite['commit']}"
    return "\n".join([f"## {name}", "", "| | first | second | times less |", "|---|---|---|---|", *rows, "", made, ""])
