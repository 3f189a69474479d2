"""`make bench`: every comparison, on one thread, as a table, as docs/benchmarks.json and as a page of the docs.

`python -m benchmarks similarity maps` runs these suites alone; the rows of the others stay as they were measured.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import (
    eikonal,
    flat_worlds,
    iqe,
    maps,
    planning,
    reacher,
    recovery,
    sigreg,
    similarity,
    vision,
    windows,
)
from benchmarks.page import benchmarks_page
from jepatlas.base.files import read_json, write_json, write_text
from jepatlas.base.provenance import provenance

SUITES = {
    "sigreg": sigreg,
    "similarity": similarity,
    "maps": maps,
    "iqe": iqe,
    "eikonal": eikonal,
    "recovery": recovery,
    "windows": windows,
    "flat-worlds": flat_worlds,
    "reacher": reacher,
    "planning": planning,
    "vision": vision,
}
RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks.json"


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    results = read_json(RESULTS) if RESULTS.exists() else {}
    for name in names or SUITES:
        rows = [asdict(row) for row in SUITES[name].run()]
        results[name] = provenance(0) | {"rows": rows}
        Console().print(_table(name, rows))
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
