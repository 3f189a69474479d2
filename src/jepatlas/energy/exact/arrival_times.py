"""Times of arrival where no sweep is needed: near the sources, in the closed form, and between the nodes."""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.energy.exact.legs import leg_time
from jepatlas.energy.exact.problem import Frame, Problem, plain_time
from jepatlas.energy.exact.rings import RADIUS

__all__ = ["plain_times", "start_times", "values_at"]


@numba.njit(cache=True, error_model="numpy")
def start_times(
    field: np.ndarray, free: np.ndarray, steps: tuple[float, float], sources: np.ndarray, reach: int
) -> np.ndarray:
    """Times on straight lines from the nearest of the sources (k, 2) to nodes within reach of it, +∞ elsewhere."""
    height, width = free.shape
    times = np.full((height, width), np.inf)
    for row, column in sources:
        for i in range(max(int(np.ceil(row)) - reach, 0), min(int(row) + reach + 1, height)):
            for j in range(max(int(np.ceil(column)) - reach, 0), min(int(column) + reach + 1, width)):
                times[i, j] = min(times[i, j], leg_time(field, free, steps, (row, column), (float(i), float(j))))
    return times


@numba.njit(cache=True, error_model="numpy")
def plain_times(shape: tuple[int, int], frame: Frame) -> np.ndarray:
    """T₀ at the nodes."""
    times = np.empty(shape)
    for i in range(shape[0]):
        for j in range(shape[1]):
            times[i, j] = plain_time(frame, float(i), float(j))
    return times


@numba.njit(cache=True, error_model="numpy")
def values_at(
    values: np.ndarray, problem: Problem, field: np.ndarray, sources: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """T at places (n, 2): between nodes T₀ + τ with τ bilinear, and straight from a source that is near."""
    found = np.empty(len(places))
    for n in range(len(places)):
        row, column = places[n]
        found[n] = _value_at(values, problem, field, row, column)
        for k in range(len(sources)):
            if max(abs(sources[k, 0] - row), abs(sources[k, 1] - column)) <= RADIUS:
                source = (sources[k, 0], sources[k, 1])
                found[n] = min(found[n], leg_time(field, problem.passable, problem.frame.steps, source, (row, column)))
    return found


@numba.njit(cache=True, error_model="numpy")
def _value_at(values: np.ndarray, problem: Problem, field: np.ndarray, row: float, column: float) -> float:
    i, j = min(int(row), values.shape[0] - 2), min(int(column), values.shape[1] - 2)
    a, b = row - i, column - j
    tau, nearest = 0.0, np.inf
    for m in (i, i + 1):
        for n in (j, j + 1):
            weight = (a if m > i else 1 - a) * (b if n > j else 1 - b)
            if weight > 0:
                tau += weight * (values[m, n] - problem.plain[m, n])
                corner = (float(m), float(n))
                nearest = min(
                    nearest,
                    values[m, n] + leg_time(field, problem.passable, problem.frame.steps, corner, (row, column)),
                )
    if tau == np.inf:  # a corner is out of reach: on from the best of the others
        return nearest
    return max(tau + plain_time(problem.frame, row, column), 0.0)  # T₀ and −T₀ cancel at the source, but for rounding
