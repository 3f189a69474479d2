"""The asymmetric eikonal equation: least travel times in currents and anisotropic effort that vary in the plane.

    E(x, y) = inf over paths from x to y of their duration, with  |v − W|_M ≤ s  along the path

This is a Randers metric where the current is slower than the vehicle. Where it is faster, points outside the reachable
set have E = +∞, as have points behind walls. T = E(source, ·) is the fixed point of semi-Lagrangian updates, computed
by fast sweeping: first with linear interpolation, which converges monotonically, then with parabolic interpolation.
Energies to a goal are energies from it in the reversed current. The error is of second order in the spacing where T is
smooth; the computed reachable set lies slightly inside the true one.

Paths are traced back through T by the update rule itself, which accounts for the current; descent along −∇T would not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import binary_dilation

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.eikonal_legs import (
    LONG_RADIUS,
    RADIUS,
    Frame,
    Problem,
    background_times,
    leg_times,
    sample_field,
    source_times,
    values_at,
)
from jepatlas.energy.exact.eikonal_sweep import sweep, visible_ring_nodes
from jepatlas.energy.exact.medium import Medium

__all__ = ["EnergyMap", "energies_from", "energies_to"]

LINEAR_TOLERANCE = 1e-3  # relative change of T that ends the linear sweeps
SMOOTH_TOLERANCE = 1e-6
SMOOTH_ROUNDS = 20  # limit on parabolic rounds, which mostly converge in a handful
TRACE_RADII = RADIUS * 0.5 ** np.arange(6)  # step sizes of a traced path, in nodes
TURNS = np.arange(64) * (2 * np.pi / 64)
FINE_TURNS = np.linspace(-1, 1, 33) * (2 * np.pi / 64)

Times = Callable[[np.ndarray], np.ndarray]
"""T at places (n, 2) → (n,)."""


@dataclass(frozen=True)
class EnergyMap:
    """Energies between all points of a medium and the nearest of its ends, which are sources or goals."""

    medium: Medium
    ends: np.ndarray  # (k, 2)
    to_goal: bool
    factored: bool
    values: np.ndarray  # (h, w), at the nodes

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The energies at points (..., 2), from the source or to the goal, (...)."""
        places = self.medium.places(points)
        return self._times_at(places.reshape(-1, 2)).reshape(places.shape[:-1])

    def path(self, point: np.ndarray) -> np.ndarray:
        """A least-time path (n, 2) from the source to a point, or from the point to the goal; empty if unreachable."""
        back = _trace(self._times_at, self._flow, self._end_places, self.medium.places(point))
        return self.medium.points(back if self.to_goal else back[::-1])

    def _times_at(self, places: np.ndarray) -> np.ndarray:
        return values_at(self.values, self._problem, self._flow.field, self._end_places, places)

    @cached_property
    def _flow(self) -> Medium:
        return self.medium.reversed if self.to_goal else self.medium

    @cached_property
    def _end_places(self) -> np.ndarray:
        return self.medium.places(self.ends)

    @cached_property
    def _problem(self) -> Problem:
        return _problem(self._flow, self._end_places, self.factored)


def energies_from(medium: Medium, source: np.ndarray, factored: bool = True) -> EnergyMap:
    """Energies from a source (2,), or from the nearest of several (k, 2), to all points.

    `factored` subtracts the closed form in the field at the source before interpolation. It does not apply to several
    sources, or to a current that carries the vehicle away from its source.

    >>> still = Medium(np.zeros((21, 21, 2)), speed=2.0)
    >>> energies_from(still, np.array([10.0, 10.0]))(np.array([13.0, 14.0])).round(6).tolist()
    2.5
    """
    return _solve(medium, source, False, factored)


def energies_to(medium: Medium, goal: np.ndarray, factored: bool = True) -> EnergyMap:
    """Energies from all points to a goal (2,), or to the nearest of several (k, 2)."""
    return _solve(medium, goal, True, factored)


def _solve(medium: Medium, ends: np.ndarray, to_goal: bool, factored: bool) -> EnergyMap:
    name = "goal" if to_goal else "source"
    ends = np.atleast_2d(np.asarray(ends, dtype=np.float64))
    if ends.ndim != 2 or len(ends) == 0:
        raise InputError(f"{name} must be one point (2,) or several (k, 2), but its shape is {ends.shape}.")
    places = medium.places(ends)
    walled = ~medium.free[tuple(np.rint(places).astype(int).T)]
    if walled.any():
        raise InputError(f"The {name} {ends[walled][0].tolist()} lies inside a wall.")
    problem = _problem(medium.reversed if to_goal else medium, places, factored)
    values = problem.start.copy()
    sweep(values, problem, LINEAR_TOLERANCE, rounds=values.size)
    sweep(values, problem._replace(smooth=True), SMOOTH_TOLERANCE, rounds=SMOOTH_ROUNDS)
    return EnergyMap(medium, ends, to_goal, problem.frame.factored, values)


def _problem(flow: Medium, sources: np.ndarray, factored: bool) -> Problem:
    steps = (float(flow.spacing[0]), float(flow.spacing[1]))
    source = (float(sources[0, 0]), float(sources[0, 1]))
    frame = Frame(steps, source, sample_field(flow.field, *source), factored and len(sources) == 1)
    if not np.isfinite(background_times(flow.shape, frame)).all():
        frame = frame._replace(factored=False)
    fast = bool(_squared_current(flow.field).max() >= 1)
    # In a fast current interpolation would blur the reachable set, so straight lines cover the whole grid.
    radius = max(flow.shape) if fast else LONG_RADIUS
    near_wall = flow.free & binary_dilation(~flow.free, np.ones((2 * RADIUS + 1, 2 * RADIUS + 1)))
    return Problem(
        frame=frame,
        halfway=_halfway(flow.field),
        passable=flow.free,
        start=source_times(flow.field, flow.free, steps, sources, radius),
        background=background_times(flow.shape, frame),
        near_wall=near_wall,
        visible=visible_ring_nodes(flow.free, near_wall),
        smooth=False,
        fast=fast,
    )


def _squared_current(field: np.ndarray) -> np.ndarray:
    """|W|² in the metric of own motion, (h, w): 1 where the current is as fast as the vehicle."""
    wx, wy, gxx, gxy, gyy = np.moveaxis(field, -1, 0)
    return gxx * wx**2 + 2 * gxy * wx * wy + gyy * wy**2


def _halfway(field: np.ndarray) -> np.ndarray:
    """The field at nodes and at midpoints between neighbours, (h, w, 5) → (2h − 1, 2w − 1, 5)."""
    height, width, _ = field.shape
    fine = np.empty((2 * height - 1, 2 * width - 1, 5))
    fine[::2, ::2] = field
    fine[1::2, ::2] = (field[1:] + field[:-1]) / 2
    fine[:, 1::2] = (fine[:, :-1:2] + fine[:, 2::2]) / 2
    return fine


def _trace(times: Times, flow: Medium, sources: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Places (n, 2) from a place back to a source, both included; empty where T is +∞.

    Steps are large in the open and shrink near walls. In a fast current the path can be lost, which is an InputError.
    """
    if np.isinf(times(place[None])[0]):
        return np.empty((0, 2))
    path = [place]
    while (source := _source_in_reach(times, flow, sources, path[-1])) is None:
        distance = np.abs(sources - path[-1]).max(-1).min()
        path.append(_previous_place(times, flow, path[-1], TRACE_RADII[distance > TRACE_RADII]))
    return np.array([*path, source])


def _source_in_reach(times: Times, flow: Medium, sources: np.ndarray, place: np.ndarray) -> np.ndarray | None:
    """A nearby source whose straight line to the place is as fast as T, or that is closer than the smallest step."""
    near = sources[np.abs(sources - place).max(-1) <= RADIUS]
    if len(near) == 0:
        return None
    straight = _times_of_legs(flow, near, place)
    best = int(straight.argmin())
    adjacent = straight[best] < np.inf and np.abs(near[best] - place).max() <= TRACE_RADII[-1]
    return near[best] if adjacent or straight[best] <= 1.01 * times(place[None])[0] else None


def _previous_place(times: Times, flow: Medium, place: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """The place one step before: the largest step to a visible place with a smaller T."""
    now = times(place[None])[0]
    for radius in radii:
        turn = _best_turn(times, flow, place, radius, TURNS)
        turn = _best_turn(times, flow, place, radius, turn + FINE_TURNS)
        before = place + radius * np.array([np.sin(turn), np.cos(turn)])
        if _total_times(times, flow, before[None], place)[0] < np.inf and times(before[None])[0] < now:
            return before
    return _previous_node(times, flow, place, now)


def _best_turn(times: Times, flow: Medium, place: np.ndarray, radius: float, turns: np.ndarray) -> float:
    before = place + radius * np.stack([np.sin(turns), np.cos(turns)], axis=-1)
    return float(turns[_total_times(times, flow, before, place).argmin()])


def _previous_node(times: Times, flow: Medium, place: np.ndarray, now: float) -> np.ndarray:
    """The best node around the place with a smaller T, for passages too narrow for any step."""
    span = np.arange(-RADIUS, RADIUS + 1)
    nodes = np.rint(place) + np.stack(np.meshgrid(span, span, indexing="ij"), axis=-1).reshape(-1, 2)
    total = _total_times(times, flow, nodes, place)
    inside = _inside(flow, nodes)
    total[inside] = np.where(times(nodes[inside]) < now, total[inside], np.inf)
    if np.isinf(total).all():
        raise InputError(
            f"The path was lost at {np.round(flow.points(place), 6).tolist()}. This can happen where the current is "
            "as fast as the vehicle. Use a finer grid, or a point farther from the border of the reachable set."
        )
    return nodes[total.argmin()]


def _total_times(times: Times, flow: Medium, before: np.ndarray, place: np.ndarray) -> np.ndarray:
    """T(p) + F(x − p) for places p (n, 2) before a place x; +∞ outside the grid."""
    total = np.full(len(before), np.inf)
    inside = _inside(flow, before)
    total[inside] = times(before[inside]) + _times_of_legs(flow, before[inside], place)
    return total


def _times_of_legs(flow: Medium, before: np.ndarray, place: np.ndarray) -> np.ndarray:
    steps = (float(flow.spacing[0]), float(flow.spacing[1]))
    return leg_times(flow.field, flow.free, steps, before, np.broadcast_to(place, before.shape).copy())


def _inside(flow: Medium, places: np.ndarray) -> np.ndarray:
    return np.all((places >= 0) & (places <= np.array(flow.shape) - 1), axis=1)
