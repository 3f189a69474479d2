"""`make bench`: every comparison, on one thread, as a table and as benchmarks/results.json."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks import sigreg
from jepatlas.base.files import write_json
from jepatlas.base.provenance import provenance

SUITES = (sigreg,)


def main() -> None:
    torch.set_num_threads(1)
    table = Table("", "baseline", "ours", "times faster", title="CPU time, one thread", title_justify="left")
    rows = [row for suite in SUITES for row in suite.run()]
    for row in rows:
        table.add_row(row.name, f"{row.baseline_ms:.2f} ms", f"{row.ours_ms:.2f} ms", f"{row.ratio:.1f}")
    Console().print(table)
    write_json(Path(__file__).with_name("results.json"), provenance(0) | {"rows": [asdict(row) for row in rows]})


if __name__ == "__main__":
    main()
