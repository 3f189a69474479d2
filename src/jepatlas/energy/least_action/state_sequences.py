"""Observed steps as sequences of states, one run of states for each uninterrupted stretch of an episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jepatlas.core.records import Experience

__all__ = ["StateSequences"]


@dataclass(frozen=True)
class StateSequences:
    """Runs of successive states; `cost` is that of the step from each state to the next, NaN at the end of a run."""

    h_nd: np.ndarray  # (n, d) float32
    run: np.ndarray  # (n,) integers
    cost: np.ndarray  # (n,)

    @classmethod
    def of(cls, experience: Experience) -> StateSequences:
        x, episode = np.asarray(experience.x), np.asarray(experience.episode)
        steps = len(x)
        follows = np.isclose(x[1:], experience.x_next[:-1], rtol=1e-5, atol=1e-5 * float(np.abs(x).max())).all(1)
        starts = np.r_[True, (episode[1:] != episode[:-1]) | ~follows]
        run_of_step = np.cumsum(starts) - 1
        first = np.arange(steps) + run_of_step  # the state that each step leaves
        h = np.empty((steps + run_of_step[-1] + 1, x.shape[1]), dtype=np.float32)
        h[first] = x
        last = np.r_[starts[1:], True]
        h[first[last] + 1] = experience.x_next[last]
        run = np.empty(len(h), dtype=np.int64)
        cost = np.full(len(h), np.nan)
        run[first] = run_of_step
        run[first[last] + 1] = run_of_step[last]
        cost[first] = experience.cost
        return cls(h, run, cost)

    @property
    def departures(self) -> np.ndarray:
        """The states from which a step was observed."""
        return np.flatnonzero(np.isfinite(self.cost))

    def with_context(self, lag: int) -> np.ndarray:
        """The states that have a state `lag` steps before and one `lag` steps after them in their run."""
        n = len(self.h_nd)
        if n <= 2 * lag:
            return np.empty(0, dtype=np.int64)
        return lag + np.flatnonzero(self.run[: n - 2 * lag] == self.run[2 * lag :])
