"""What pairs of charts say about each other: the states they share, their means, and the cross-scatter about these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Overlaps", "rows_of_states"]

Turns = Mapping[int, np.ndarray]
"""Q_k (D, d_k) of the charts that have their place."""


class Overlaps:
    """Moments of all pairs of charts (N_k, d_k) with rows `ids`; a lone shared state has nothing about its mean."""

    def __init__(self, charts: Sequence[np.ndarray], ids: Sequence[np.ndarray], names: Sequence[str]) -> None:
        self.names = names
        self.widths = [chart.shape[1] for chart in charts]
        self.width = max(self.widths)
        self.counts = np.zeros((len(charts), len(charts)), dtype=int)
        self.means: dict[tuple[int, int], np.ndarray] = {}
        self.scatter: dict[tuple[int, int], np.ndarray] = {}
        for k, j in combinations(range(len(charts)), 2):
            states = np.intersect1d(ids[k], ids[j], assume_unique=True)
            if len(states) < 2:
                continue
            x, y = (charts[i][rows_of_states(states, ids[i])] for i in (k, j))
            self.counts[k, j] = self.counts[j, k] = len(states)
            self.means[k, j], self.means[j, k] = x.mean(0), y.mean(0)
            self.scatter[k, j] = (x - x.mean(0)).T @ (y - y.mean(0))
            self.scatter[j, k] = self.scatter[k, j].T

    def pull(self, k: int, turns: Turns) -> np.ndarray:
        """Σ_l Q_l C_lk over the charts that have their place: (D, d_k)."""
        total = np.zeros((self.width, self.widths[k]))
        for j, turn in turns.items():
            if (j, k) in self.scatter:
                total += turn @ self.scatter[j, k]
        return total

    def agreement(self, turns: Turns) -> float:
        return sum(float(np.sum(turn * self.pull(k, turns))) for k, turn in turns.items()) / 2

    def next_to(self, placed: Turns) -> int:
        """The chart that shares most states with those that have their place."""
        inside = np.isin(np.arange(len(self.widths)), list(placed))
        ties = np.where(inside, 0, self.counts[inside].sum(0))
        if not ties.any():
            here, there = (", ".join(np.array(self.names)[side]) for side in (inside, ~inside))
            raise InputError(
                f"No common frame: no two states are shared between a chart of ({here}) and one of ({there}), directly "
                "or through others. Give latents of states that both sides have seen, under the same ids."
            )
        return int(np.argmax(ties))

    def shifts(self, turns: Turns, origin: int) -> dict[int, np.ndarray]:
        """t_k that make the means of shared states meet: Laplacian · t = Σ_l n_kl (Q_l m_lk − Q_k m_kl)."""
        chosen = list(turns)
        counts = self.counts[np.ix_(chosen, chosen)]
        gaps = np.zeros((len(chosen), self.width))
        for row, k in enumerate(chosen):
            for j in chosen:
                if (j, k) in self.means:
                    gaps[row] += self.counts[k, j] * (turns[j] @ self.means[j, k] - turns[k] @ self.means[k, j])
        found = np.linalg.pinv((np.diag(counts.sum(1)) - counts).astype(np.float64)) @ gaps
        return {k: row - found[chosen.index(origin)] for k, row in zip(chosen, found, strict=True)}


def rows_of_states(states: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Where the states are among unique ids that hold all of them."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids, states, sorter=order)]
