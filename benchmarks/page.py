"""docs/benchmarks.md, from docs/benchmarks.json alone: no figure is typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["benchmarks_page"]

HEAD = """# Benchmarks

CPU time on one thread and peak memory, two ways of doing the same thing in turns of one run, so that both meet the same
noise; `make bench` makes this page. The last column is the median of the ratios of neighbouring turns. Whole steps of
training in `vision`, whose crops another thread makes, are timed by the clock.

"""
RECOVERY = """\
CPU time until the state of the spiral world (ρ = .95) is recovered with held-out R² .985. Every 100 steps, with the
clock stopped, a linear map from latents to states is fitted on one half of 10,000 fresh pairs and scored on the other;
the time is that of the first of two looks in a row that find .985. First are the published settings (batch 256, 256
random slices, learning rate 3e-3, at most 20,000 steps) through our own loop, with SIGReg written down as its
definition has it: one seed, because they are slow. Second are our defaults, and the spectral solver on 40,000 pairs,
which has no steps: medians of three seeds. The last column is the median of the seeds' ratios; a seed that never gets
there would count as infinite.
"""
ABOUT = {"recovery": RECOVERY}
"""What a suite measures, where its rows do not say it."""


def benchmarks_page(results: Mapping[str, Any]) -> str:
    return HEAD + "\n".join(_section(name, suite) for name, suite in results.items())


def _section(name: str, suite: Mapping[str, Any]) -> str:
    rows = []
    for row in suite["rows"]:
        first, second = (f"{float(row[key]):.4g} {row['unit']}" for key in ("baseline", "ours"))
        rows.append(f"| {row['name']} | {first} | {second} | {float(row['ratio']):.3g} |")
    made = f"jepatlas {suite['version']}, commit {suite['commit']}"
    table = ["| | first | second | times less |", "|---|---|---|---|", *rows]
    return "\n".join([f"## {name}", "", *([ABOUT[name]] if name in ABOUT else []), *table, "", made, ""])
