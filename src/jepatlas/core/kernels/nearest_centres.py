"""Exact nearest centres, skipping those that the triangle inequality rules out.

Centres c are grouped around hubs C, and sorted by their distance r = ‖c − C‖ in each group. For a query q with ‖q − C‖
known, ‖q − c‖ ≥ |‖q − C‖ − r|. So only the centres whose r is close to ‖q − C‖ are compared. The equivalent in torch is
`jepatlas.energy.least_action.cells.nearest_centres` with few centres.
"""

from __future__ import annotations

import numpy as np

from jepatlas.core.kernels import compiled
from jepatlas.core.kernels.distances import squared_distance

__all__ = ["nearest_in_groups"]


@compiled
def nearest_in_groups(
    queries: np.ndarray, hub_distances: np.ndarray, starts: np.ndarray, radii: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    """The index of the nearest centre of each query, (n,).

    Group g are the rows starts[g] … starts[g + 1] − 1 of the centres, with ascending radii. `hub_distances` (n, groups)
    are ‖q − C‖.
    """
    found = np.empty(len(queries), dtype=np.int64)
    rows = (radii, centres)
    for n in range(len(queries)):
        query = queries[n]
        first = np.argmin(hub_distances[n])
        best, at = _search(query, hub_distances[n, first], (starts[first], starts[first + 1]), rows, np.inf)
        for group in range(len(starts) - 1):
            begin, end = starts[group], starts[group + 1]
            distance = hub_distances[n, group]
            if group == first or begin == end or distance - radii[end - 1] > best or radii[begin] - distance > best:
                continue
            nearer, place = _search(query, distance, (begin, end), rows, best)
            if nearer < best:
                best, at = nearer, place
        found[n] = at
    return found


@compiled
def _search(
    query: np.ndarray, distance: float, group: tuple[int, int], rows: tuple[np.ndarray, np.ndarray], best: float
) -> tuple[float, int]:
    """The distance and the row of the nearest centre of a group, if it is nearer than `best`."""
    (begin, end), (radii, centres) = group, rows
    at = -1
    up = begin + np.searchsorted(radii[begin:end], distance)
    down = up - 1
    while up < end or down >= begin:
        up_gap = radii[up] - distance if up < end else np.inf
        down_gap = distance - radii[down] if down >= begin else np.inf
        row = up if up_gap <= down_gap else down
        if min(up_gap, down_gap) > best:
            break
        if row == up:
            up += 1
        else:
            down -= 1
        length = np.sqrt(squared_distance(query, centres[row]))
        if length < best:
            best, at = length, row
    return best, at
