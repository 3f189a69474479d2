"""CPU time of `certify` on one thread, without the true state and ρ, against the time it may take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Comparison, cpu_ms
from jepatlas.core.seeding import numpy_generator
from jepatlas.workflows.certify import certify_arrays

__all__ = ["run"]

RHO = 0.9
SECONDS = {(20_000, 4): 3.0, (40_000, 16): 8.0, (20_000, 256): 60.0}
"""What a certificate may take, by the rows and columns of its latents."""


def run() -> Iterator[Comparison]:
    with threadpool_limits(1):
        _certify(1000, 2)  # compiles kernels
        for (rows, columns), limit in SECONDS.items():
            seconds = _certify(rows, columns)
            yield Comparison.of(f"certify {rows:,}×{columns}: limit, ours", [limit], [seconds], "s")


def _certify(rows: int, columns: int) -> float:
    z, noise = numpy_generator(0, "certificates").standard_normal((2, rows, columns))
    arrays = {"h": z, "h_next": RHO * z + np.sqrt(1 - RHO**2) * noise}
    return cpu_ms(lambda: certify_arrays("Certificate", arrays, rho=None, seed=0)) / 1e3
