"""The page docs/benchmarks.md, generated from docs/benchmarks.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["benchmarks_page"]

HEAD = """# Benchmarks

CPU time on one thread and peak memory of two implementations, measured alternately so that both have the same noise.
`make bench` generates this page. The last column is the median ratio of consecutive measurements. Training steps in
`vision`, which use a second thread for crops, are measured in wall-clock time.

"""
RECOVERY = """\
CPU time until the state of the spiral world (ρ = .95) is recovered with held-out R² .985. Every 100 steps, with the
clock stopped, a linear map from latents to states is fitted on one half of 10,000 fresh pairs and scored on the other.
The time ends at the first of two consecutive evaluations with R² ≥ .985. The baseline has the published settings (batch
256, 256 random slices, learning rate 3e-3, at most 20,000 steps) and SIGReg by its definition, with one seed. It is
compared with the default settings and with the spectral solver on 40,000 pairs, as medians over three seeds. The last
column is the median of the seeds' ratios; a seed without success would count as infinite.
"""
ABOUT = {"recovery": RECOVERY}
"""Explanations of suites whose row names are not sufficient."""


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
