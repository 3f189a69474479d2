"""Run benchmarks on one thread and show them as tables: `python -m benchmarks [SUITE ...] [--publish]`.

`--publish` writes docs/benchmarks.json and docs/benchmarks.md, and keeps the published rows of suites that are not run.
`make bench` runs and publishes all suites.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import (
    certificates,
    eikonal,
    encode,
    flat_worlds,
    iqe,
    maps,
    monitor,
    planning,
    reacher,
    recovery,
    sigreg,
    similarity,
    threads,
    vision,
    windows,
)
from benchmarks.benchmark_page import benchmarks_page
from jepatlas.core.errors import did_you_mean
from jepatlas.core.files import read_json, write_json, write_text
from jepatlas.core.provenance import provenance

SUITES = {
    "certificates": certificates,
    "sigreg": sigreg,
    "similarity": similarity,
    "maps": maps,
    "threads": threads,
    "iqe": iqe,
    "eikonal": eikonal,
    "recovery": recovery,
    "windows": windows,
    "flat-worlds": flat_worlds,
    "reacher": reacher,
    "planning": planning,
    "vision": vision,
    "monitor": monitor,
    "encode": encode,
}
RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks.json"


def main(words: list[str]) -> None:
    """Run the named suites; unknown suites and options exit with code 2 before anything is measured."""
    parser = argparse.ArgumentParser("python -m benchmarks", description="Compare timings of two implementations.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"by default all: {', '.join(SUITES)}")
    parser.add_argument("--publish", action="store_true", help="write these suites into docs/benchmarks.json and .md")
    options = parser.parse_args(words)
    if unknown := [name for name in options.suites if name not in SUITES]:
        parser.error(f"there is no suite '{unknown[0]}'. {did_you_mean(unknown[0], SUITES)}")
    torch.set_num_threads(1)
    for name in options.suites or SUITES:
        rows = [asdict(row) for row in SUITES[name].run()]
        Console().print(_table(name, rows))
        if options.publish:
            _publish(name, rows)


def _publish(name: str, rows: list[dict]) -> None:
    """Replace the published rows of one suite."""
    results = (read_json(RESULTS) if RESULTS.exists() else {}) | {name: provenance(0) | {"rows": rows}}
    write_json(RESULTS, {suite: results[suite] for suite in SUITES if suite in results})
    write_text(RESULTS.with_suffix(".md"), benchmarks_page(read_json(RESULTS)))


def _table(name: str, rows: list[dict]) -> Table:
    table = Table("", "first", "second", "times less", title=name, title_justify="left")
    for row in rows:
        first, second = (f"{row[key]:.4g} {row['unit']}" for key in ("baseline", "ours"))
        table.add_row(row["name"], first, second, f"{row['ratio']:.3g}")
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
