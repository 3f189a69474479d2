"""`make bench`: every comparison, on one thread, as a table and as benchmarks/results.json."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import maps, recovery, sigreg, similarity
from jepatlas.base.files import write_json
from jepatlas.base.provenance import provenance

SUITES = (sigreg, similarity, maps, recovery)


def main() -> None:
    torch.set_num_threads(1)
    table = Table(
        "", "baseline", "ours", "times less", title="CPU time on one thread, and memory", title_justify="left"
    )
    rows = [row for suite in SUITES for row in suite.run()]
    for row in rows:
        table.add_row(row.name, f"{row.baseline:.4g} {row.unit}", f"{row.ours:.4g} {row.unit}", f"{row.ratio:.3g}")
    Console().print(table)
    write_json(Path(__file__).with_name("results.json"), provenance(0) | {"rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
