"""The least T(p) + F(x − p) over a ring round x, of which T is known at the nodes.

    T(p) = T₀(p) + τ(p),    τ = (1 − s) τ_a + s τ_b − s (1 − s) β / 2    at the share s between nodes a and b

T₀ is the closed form in the current at the source, which has the kink there, and β the bend of τ: that is of fourth
order where T is smooth and, where β is 0, linear.
"""

from __future__ import annotations

import numba
import numpy as np

from jepatlas.energy.exact.legs import Field, mixed, travel_time
from jepatlas.energy.exact.problem import Frame, plain_time
from jepatlas.energy.exact.rings import RINGS, Ring

__all__ = ["cost", "least_on_ring", "search"]

GOLDEN = 0.6180339887498949
SEARCHES = 10  # narrows two edges of a ring to 0.01 of one; what is lost is of the order of its square


@numba.njit(cache=True, error_model="numpy")
def least_on_ring(work: np.ndarray, frame: Frame, ring: Ring) -> float:
    """T(x) by a ring: from its best node on, and from other valleys that may be deeper between nodes."""
    count, best = 8 * ring[2], 0
    for place in range(count + 1):
        work[place, 8] = cost(work, frame, ring, float(place))
        if work[place, 8] < work[best, 8]:
            best = place
    least = work[best, 8]
    for turn in range(count):
        place = (best + turn) % count
        here, left, right = work[place, 8], work[place - 1 if place > 0 else count - 1, 8], work[place + 1, 8]
        # A convex valley lies no deeper below its node than the node below its higher neighbour.
        deep = max(left, right) == np.inf or 2 * here - max(left, right) < least
        if here < np.inf and here <= min(left, right) and deep:
            least = min(least, search(work, frame, ring, float(place)))
    return least


@numba.njit(cache=True, error_model="numpy")
def search(work: np.ndarray, frame: Frame, ring: Ring, middle: float) -> float:
    """Golden section over the two edges round a place; where both probes are out of reach, towards the middle."""
    low, high, least = middle - 1, middle + 1, np.inf
    left, right = high - 2 * GOLDEN, low + 2 * GOLDEN
    at_left, at_right = cost(work, frame, ring, left), cost(work, frame, ring, right)
    for _ in range(SEARCHES):
        least = min(least, at_left, at_right)
        if at_left == np.inf and at_right == np.inf:
            low, high = left, right
            left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            at_left, at_right = cost(work, frame, ring, left), cost(work, frame, ring, right)
        elif at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = cost(work, frame, ring, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = cost(work, frame, ring, right)
    return min(least, at_left, at_right)


@numba.njit(cache=True, error_model="numpy")
def cost(work: np.ndarray, frame: Frame, ring: Ring, place: float) -> float:
    """T(p) + F(x − p) for a place on the ring, counted in nodes along it."""
    floor = int(np.floor(place))
    share, a = place - floor, floor % (8 * ring[2])
    b = a + 1 if share > 0 else a
    if work[a, 0] == np.inf or work[b, 0] == np.inf:
        return np.inf
    di = (1 - share) * RINGS[ring[2], a, 0] + share * RINGS[ring[2], b, 0]
    dj = (1 - share) * RINGS[ring[2], a, 1] + share * RINGS[ring[2], b, 1]
    field = mixed(_field_of(work, a), _field_of(work, b), share)
    time = travel_time(-dj * frame.steps[0], -di * frame.steps[1], field)
    if share == 0:
        return work[a, 0] + time
    tau = (1 - share) * work[a, 1] + share * work[b, 1] - share * (1 - share) / 2 * work[a, 2]
    return time + tau + plain_time(frame, ring[0] + di, ring[1] + dj)


@numba.njit(cache=True, error_model="numpy")
def _field_of(work: np.ndarray, place: int) -> Field:
    return work[place, 3], work[place, 4], work[place, 5], work[place, 6], work[place, 7]
