"""Generalised Procrustes: one rotation for each of K charts, such that all agree in a common frame.

    maximise  Σ_{k<l} Σ_s ⟨Q_k u_ks, Q_l u_ls⟩        over Q_k with Q_kᵀQ_k = I,  s over the states that k and l share

Block coordinate ascent: Q_k is the polar factor of Σ_l Q_l C_lk, with C_lk the cross-scatter of two charts. Every step
increases the sum and needs only these d × d matrices. Charts may share different states; two that share none are
connected through a third. The frame is as wide as the widest charts. If these determine each other, they alone define
it, and narrower charts are placed afterwards, because the sum above treats the directions that they lack as zero.

The charts' coordinates u must be centred and, unless they are known to be rotations of one state, whitened. Whitening
on different states assumes that these have the same distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap

__all__ = ["Frame", "consensus", "generalised_procrustes", "place", "polar", "rank"]

SWEEPS, TOLERANCE = 1000, 1e-13


@dataclass(frozen=True)
class Frame:
    """A common frame with the axes and origin of the first of the widest charts."""

    maps: tuple[LinearMap, ...]
    """F = Q_k u + t_k for each chart; t_k is zero if all have the same states."""
    tied: tuple[int, ...]
    """Rank of each chart's cross-scatter with the others; Q_k is arbitrary in the other directions."""
    shared: tuple[int, ...]
    """Number of states of each chart that other charts also have."""
    sweeps: int


def generalised_procrustes(
    charts: Sequence[np.ndarray], ids: Sequence[np.ndarray], names: Sequence[str] | None = None
) -> Frame:
    """Common frame of charts (N_k, d_k) whose rows are the states `ids` (N_k,), unique in each chart.

    >>> h = np.random.default_rng(0).standard_normal((50, 2))
    >>> frame = generalised_procrustes([h, h @ np.array([[0.0, 1.0], [-1.0, 0.0]])], [np.arange(50)] * 2)
    >>> np.allclose(frame.maps[1].weight, [[0, 1], [-1, 0]])
    True
    """
    charts, everyone = [chart.astype(np.float64) for chart in charts], range(len(charts))
    overlaps = Overlaps(charts, ids, names or [str(k) for k in everyone])
    turns, origin = _start(overlaps)
    sweeps = _sweep(overlaps, turns)
    turns = {k: turns[origin].T @ turn for k, turn in turns.items()}
    shifts = overlaps.shifts(turns, origin)
    maps = {k: LinearMap(turn, np.zeros(turn.shape[1]), shifts[k]) for k, turn in turns.items()}
    while len(maps) < len(charts):
        k = overlaps.next_to(turns)
        states = _known_states(overlaps, ids, k, list(maps))
        maps[k] = place(charts[k][rows_of_states(states, ids[k])], consensus(maps, charts, ids, states))
        turns[k] = maps[k].weight
    tied = tuple(rank(overlaps.pull(k, turns)) for k in everyone)
    seen = np.unique(np.concatenate(ids), return_counts=True)
    shared = tuple(int(np.isin(own, seen[0][seen[1] > 1]).sum()) for own in ids)
    return Frame(tuple(maps[k] for k in everyone), tied, shared, sweeps)


def consensus(
    maps: Mapping[int, LinearMap], charts: Sequence[np.ndarray], ids: Sequence[np.ndarray], states: np.ndarray
) -> np.ndarray:
    """Frame coordinates (n, D) of states: F = argmin Σ_k ‖Q_kᵀ(F − t_k) − u_k‖² over the charts that have the state.

    A narrow chart does not affect directions that it lacks; directions that all charts lack are zero.
    """
    members, width = list(maps), len(next(iter(maps.values())).y_mean)
    seen, found = np.stack([np.isin(states, ids[k]) for k in members], axis=1), np.zeros((len(states), width))
    for pattern in np.unique(seen, axis=0):
        rows = (seen == pattern).all(1)
        pulls, directions = np.zeros((int(rows.sum()), width)), np.zeros((width, width))
        for k in np.array(members)[pattern].tolist():
            turn, u = maps[k].weight, charts[k][rows_of_states(states[rows], ids[k])]
            pulls += maps[k].apply(u) @ (turn @ turn.T)
            directions += turn @ turn.T
        found[rows] = pulls @ np.linalg.pinv(directions, rcond=RANK)
    return found


def _start(overlaps: Overlaps) -> tuple[dict[int, np.ndarray], int]:
    """Initial rotations of the charts that define the frame, and the number of the chart that is its origin.

    The origin is the first of the widest charts. Others follow in order of the states they share with placed charts.
    """
    wide = [k for k, width in enumerate(overlaps.widths) if width == overlaps.width]
    turns = {wide[0]: np.eye(overlaps.width)}
    while len(turns) < len(overlaps.widths):
        k = overlaps.next_to(turns)
        turns[k] = polar(overlaps.pull(k, turns))
    makers = {k: turns[k] for k in wide}
    held = all(rank(overlaps.pull(k, makers)) == overlaps.width for k in wide) or len(wide) == 1
    return (makers if held else turns), wide[0]


def _known_states(overlaps: Overlaps, ids: Sequence[np.ndarray], k: int, placed: Sequence[int]) -> np.ndarray:
    """States to place chart k with: those with known coordinates in all directions, if there are enough."""
    wide = [ids[j] for j in placed if overlaps.widths[j] == overlaps.width]
    states = np.intersect1d(ids[k], np.concatenate(wide))
    return states if len(states) > overlaps.width else np.intersect1d(ids[k], np.concatenate([ids[j] for j in placed]))


def _sweep(overlaps: Overlaps, turns: dict[int, np.ndarray]) -> int:
    """Rotate each chart onto the others until the objective converges; returns the number of sweeps."""
    agreement = overlaps.agreement(turns)
    for sweep in range(SWEEPS if len(turns) > 1 else 0):
        for k in turns:
            turns[k] = polar(overlaps.pull(k, turns))
        before, agreement = agreement, overlaps.agreement(turns)
        if agreement - before <= TOLERANCE * abs(agreement):
            return sweep + 1
    return SWEEPS if len(turns) > 1 else 0


Turns = Mapping[int, np.ndarray]
"""Q_k (D, d_k) of the charts that are placed in the frame."""


class Overlaps:
    """Counts, means and cross-scatters of all pairs of charts (N_k, d_k) that share at least two states."""

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
        """Σ_l Q_l C_lk (D, d_k) over the placed charts."""
        total = np.zeros((self.width, self.widths[k]))
        for j, turn in turns.items():
            if (j, k) in self.scatter:
                total += turn @ self.scatter[j, k]
        return total

    def agreement(self, turns: Turns) -> float:
        """The objective of generalised Procrustes."""
        return sum(float(np.sum(turn * self.pull(k, turns))) for k, turn in turns.items()) / 2

    def next_to(self, placed: Turns) -> int:
        """The chart that shares most states with the placed charts."""
        inside = np.isin(np.arange(len(self.widths)), list(placed))
        ties = np.where(inside, 0, self.counts[inside].sum(0))
        if not ties.any():
            here, there = (", ".join(np.array(self.names)[side]) for side in (inside, ~inside))
            raise InputError(
                f"No common frame: charts of ({here}) and charts of ({there}) share fewer than two states, directly "
                "and through others. Give latents of states that both have, with the same ids."
            )
        return int(np.argmax(ties))

    def shifts(self, turns: Turns, origin: int) -> dict[int, np.ndarray]:
        """t_k that align the means of shared states: Laplacian · t = Σ_l n_kl (Q_l m_lk − Q_k m_kl)."""
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
    """Row of each state among unique ids, which must include all of them."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids, states, sorter=order)]


STEPS, STEP_TOLERANCE = 300, 1e-14
RANK = 1e-10
"""Share of the largest singular value of a cross-scatter below which others are rounding."""


def place(u: np.ndarray, goal: np.ndarray) -> LinearMap:
    """Projection Procrustes: the map of rows u (n, d) to coordinates `goal` (n, D) with orthonormal columns or rows.

    minimise  Σ_s ‖y_s − M x_s‖²    over M with MMᵀ = I,   x the wider of the two sides, centred

    Directions of the wider side alone do not count as errors. With equal widths M = UVᵀ of the cross-scatter. Otherwise
    there is no closed form, and UVᵀ is right on average only, for white coordinates; it is improved by majorisation:
    with A = Σxxᵀ and α its largest eigenvalue, M ← polar(Σyxᵀ + M(αI − A)).

    >>> z = np.random.default_rng(0).standard_normal((9, 3))
    >>> np.allclose(place(z[:, [2, 0]], z).weight, [[0, 1], [0, 0], [1, 0]], atol=1e-6)
    True
    """
    u_mean, goal_mean = u.mean(0), goal.mean(0)
    x, y = u - u_mean, goal - goal_mean
    weight = _project(x, y) if u.shape[1] >= goal.shape[1] else _project(y, x).T
    return LinearMap(weight, u_mean, goal_mean)


def _project(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """M (narrow, wide), from the wide side x to the narrow side y."""
    cross, gram = y.T @ x, x.T @ x
    m = polar(cross)
    if x.shape[1] == y.shape[1]:
        return m
    rest = np.linalg.eigvalsh(gram)[-1] * np.eye(len(gram)) - gram
    for _ in range(STEPS):
        before, m = m, polar(cross + m @ rest)
        if np.square(m - before).sum() <= STEP_TOLERANCE * len(m):
            break
    return m


def polar(matrix: np.ndarray) -> np.ndarray:
    """Orthogonal polar factor: UVᵀ of UΣVᵀ."""
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return u @ vt


def rank(matrix: np.ndarray) -> int:
    """Numerical rank of a cross-scatter."""
    sigma = np.linalg.svd(matrix, compute_uv=False)
    return int((sigma > RANK * max(sigma[0], np.finfo(float).tiny)).sum())
