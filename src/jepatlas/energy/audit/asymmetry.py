"""How much the way back differs: 0 for a symmetric energy, 1 where every way is one-way.

    index = mean over pairs of |E(x, y) − E(y, x)| / (E(x, y) + E(y, x))

A pair with a way in one direction only counts 1; with none in both, or both at no energy, 0.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.records import Verdict
from jepatlas.core.stats import bootstrap
from jepatlas.energy.audit.sample import Sample

__all__ = ["asymmetry", "asymmetry_index"]

REPLICATES = 200


def asymmetry(sample: Sample) -> Verdict:
    """The index, with an interval over states; it informs."""
    row, column = np.triu_indices(sample.n, 1)
    index = asymmetry_index(sample.energies)[row, column]

    def mean(weights: np.ndarray) -> dict[str, float]:
        pairs = weights[row] * weights[column]
        return {"asymmetry": float(np.average(index, weights=pairs if pairs.any() else None))}

    found = bootstrap(mean, sample.n, sample.rng("asymmetry"), replicates=REPLICATES)["asymmetry"]
    worst = int(index.argmax())
    ways = [(row[worst], column[worst]), (column[worst], row[worst])]
    dear, cheap = sorted(ways, key=lambda way: -sample.energies[way])
    named = (
        f"It differs most {sample.pair(dear[0] * sample.n + dear[1])}: {sample.energies[dear]:.4g}, and "
        f"{sample.energies[cheap]:.4g} back."
    )
    good = "The way back is as far as the way there: symmetric." if index[worst] <= sample.tolerance else named
    return Verdict.judge("asymmetry", found, direction="higher", null=0.0, good=good)


def asymmetry_index(energies: np.ndarray) -> np.ndarray:
    """Of every pair, (n, n).

    >>> asymmetry_index(np.array([[0.0, 3.0], [1.0, 0.0]]))[0, 1]
    np.float64(0.5)
    """
    there = np.maximum(energies, 0.0)
    back, one_way = there.T, np.isinf(there) != np.isinf(there.T)
    usual = np.isfinite(there) & np.isfinite(back)
    total = np.where(usual, there + back, 0.0)
    differ = np.abs(np.where(usual, there, 0.0) - np.where(usual, back, 0.0))
    return np.where(one_way, 1.0, differ / np.where(total > 0, total, 1.0))
