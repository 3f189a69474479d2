"""CPU time of `jepatlas align` as it is called by default, beside one thread, also while others keep all cores busy.

Threads of BLAS wait actively, so that on busy cores two of them cost several times the CPU time of one. Without
`--threads` and OMP_NUM_THREADS, commands therefore use one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measurement import Comparison
from jepatlas.core.seeding import numpy_generator

__all__ = ["run"]

ROWS, WIDTH, TURNS = 500, 384, 3
COMMAND = "import sys; from jepatlas.cli import main; sys.exit(main(sys.argv[1:]))"


def run(rows: int = ROWS, width: int = WIDTH, turns: int = TURNS) -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory() as folder:
        a, b = numpy_generator(0, "threads").standard_normal((2, rows, width), np.float32)
        np.save(f"{folder}/a.npy", a)
        np.save(f"{folder}/b.npy", a + b)
        name = f"align of two {rows}×{width} files: OMP_NUM_THREADS=1, default"
        yield measured(name, folder, turns)
        others = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(cores())]
        try:
            for one in others:
                one.start()
            yield measured(f"{name}; {len(others)} other processes keep the cores busy", folder, turns)
        finally:
            for one in others:
                one.kill()


def cores() -> int:
    return os.cpu_count() or 1


def spin() -> None:
    while True:
        pass


def measured(name: str, folder: str, turns: int) -> Comparison:
    pairs = [(align_ms(folder, {"OMP_NUM_THREADS": "1"}), align_ms(folder, {})) for _ in range(turns)]
    return Comparison.of(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def align_ms(folder: str, environment: dict[str, str]) -> float:
    """CPU time of the command in a process of its own."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_THREADS")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["align", "a.npy", "b.npy", "--out", "out"]
    command = [sys.executable, "-c", COMMAND, *words]
    subprocess.run(command, cwd=Path(folder), env=known | environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
