"""`make bench`: every comparison, on one thread, as a table, as docs/benchmarks.json and as a page of the docs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import maps, recovery, sigreg, similarity
from benchmarks.page import benchmarks_page
from jepatlas.base.files import read_json, write_json, write_text
from jepatlas.base.provenance import provenance

SUITES = (sigreg, similarity, maps, recovery)
DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    torch.set_num_threads(1)
    table = Table(
        "", "baseline", "ours", "times less", title="CPU time on one thread, and memory", title_justify="left"
    )
    rows = [row for suite in SUITES for row in suite.run()]
    for row in rows:
        table.add_row(row.name, f"{row.baseline:.4g} {row.unit}", f"{row.ours:.4g} {row.unit}", f"{row.ratio:.3g}")
    Console().print(table)
    write_json(DOCS / "benchmarks.json", provenance(0) | {"rows": [asdict(row) for row in rows]})
    write_text(DOCS / "benchmarks.md", benchmarks_page(read_json(DOCS / "benchmarks.json")))


if __name__ == "__main__":
    main()
