"""The closure of a matrix of energies: the least that any way through the sampled states costs (Floyd and Warshall).

    D(x, z) = min over x = y_0, y_1, …, y_k = z of Σ E(y_{i−1}, y_i)

It is the largest quasimetric that is nowhere above E, and E itself where E is one already.
"""

from __future__ import annotations

import numpy as np

__all__ = ["closure"]


def closure(energies: np.ndarray) -> np.ndarray:
    """The closure of energies (n, n): zero from a state to itself, and nothing negative.

    scipy's would take an energy of zero in a dense matrix for a missing edge.

    >>> closure(np.array([[0, 1, 5], [1, 0, 1], [np.inf, 1, 0]]))
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    from jepatlas.energy.audit.closure_kernel import relax  # noqa: PLC0415  (numba takes a second to import)

    ways = np.maximum(energies, 0.0).astype(np.float64)
    np.fill_diagonal(ways, 0.0)
    relax(ways)
    return ways
