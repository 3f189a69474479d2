"""Generalised Procrustes: one rotation for each of K charts, so that all agree in a common frame.

    maximise  Σ_{k<l} Σ_s ⟨Q_k u_ks, Q_l u_ls⟩        over Q_k with Q_kᵀQ_k = I,  s over the states that k and l share

One chart is turned at a time: Q_k is the polar factor of Σ_l Q_l C_lk, with C_lk the cross-scatter of the two charts.
Every turn raises the sum. Only these d × d matrices are needed, never the rows again. Charts may share different
states: two that share none meet through a third. The frame is as wide as the widest charts. Where these hold each other
in place they alone make it, and narrower charts are put into it afterwards: the sum above is right for them on average
only, because it takes what they do not see for zero.

Rotations cannot mend what is not one: the charts' coordinates u must be centred and, unless they are known to be
rotations of one state, whitened. Whitening by different states presumes that they were drawn from the same law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jepatlas.alignment.atlas.overlaps import Overlaps, rows_of_states
from jepatlas.alignment.atlas.placing import RANK, place, polar, rank
from jepatlas.core.linear_map import LinearMap

__all__ = ["Frame", "consensus", "generalised_procrustes"]

SWEEPS, TOLERANCE = 1000, 1e-13


@dataclass(frozen=True)
class Frame:
    """A common frame. Its axes and its origin are those of the first of the widest charts."""

    maps: tuple[LinearMap, ...]
    """F = Q_k u + t_k of each chart; t_k is zero where all saw the same states."""
    tied: tuple[int, ...]
    """Directions of each chart that states shared with others hold in place; the rest could be turned freely."""
    shared: tuple[int, ...]
    """States of each chart that others saw, too."""
    sweeps: int


def generalised_procrustes(
    charts: Sequence[np.ndarray], ids: Sequence[np.ndarray], names: Sequence[str] | None = None
) -> Frame:
    """The frame of charts (N_k, d_k) whose rows are the states `ids` (N_k,), unique in each chart.

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
    """Frame coordinates of states (n, D): F = argmin Σ_k ‖Q_kᵀ(F − t_k) − u_k‖² over the charts that saw the state.

    So a narrow chart has no say in the directions that it does not see; what no chart sees is at the origin.
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
    """A first turn for the charts that will make the frame, and which of them is its origin.

    The first of the widest as it is, then always the chart that shares most states with those that have their place.
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
    """States to place chart k by: those with all their coordinates in the frame, where they are enough."""
    wide = [ids[j] for j in placed if overlaps.widths[j] == overlaps.width]
    states = np.intersect1d(ids[k], np.concatenate(wide))
    return states if len(states) > overlaps.width else np.intersect1d(ids[k], np.concatenate([ids[j] for j in placed]))


def _sweep(overlaps: Overlaps, turns: dict[int, np.ndarray]) -> int:
    """Turn each chart onto the others until none gains; how often it took."""
    reached = overlaps.agreement(turns)
    for sweep in range(SWEEPS if len(turns) > 1 else 0):
        for k in turns:
            turns[k] = polar(overlaps.pull(k, turns))
        before, reached = reached, overlaps.agreement(turns)
        if reached - before <= TOLERANCE * abs(reached):
            return sweep + 1
    return SWEEPS if len(turns) > 1 else 0
