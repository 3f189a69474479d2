"""The asymmetric eikonal equation: least times through currents and anisotropic effort that vary in the plane.

    E(x, y) = inf over paths from x to y of their duration, with  |v − W|_M ≤ s  along the way

a Randers metric where the current is slower than the vehicle; where it is faster, what lies outside the reachable set
has E = +∞, as has what lies behind walls. T = E(source, ·) is the fixed point of the semi-Lagrangian updates of
`updates`, swept first with linear interpolation, which can only lower T and so ends, then with parabolas from there.
Energies to a goal are energies from it in the reversed current. The error is of second order in the spacing where T
is smooth; the border of a reachable set is drawn a little inside the true one. Away from nodes T is interpolated, and
paths are traced back through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.ndimage import binary_dilation

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.arrival_times import plain_times, start_times, values_at
from jepatlas.energy.exact.geodesics import trace
from jepatlas.energy.exact.legs import sample_field
from jepatlas.energy.exact.medium import Medium
from jepatlas.energy.exact.problem import Frame, Problem
from jepatlas.energy.exact.rings import LONG_RADIUS, RADIUS, look_round
from jepatlas.energy.exact.sweeping import sweep

__all__ = ["EnergyMap", "energies_from", "energies_to"]

ROUGH, FINE = 1e-3, 1e-6  # shares of T that still count as a change, in linear and in smooth sweeps
ROUNDS = 20  # of smooth sweeps; they mostly end after a handful


@dataclass(frozen=True)
class EnergyMap:
    """Energies between all points of a medium and one end, or the nearest of several: a source, or a goal."""

    medium: Medium
    ends: np.ndarray  # (k, 2)
    to_goal: bool
    factored: bool
    values: np.ndarray  # (h, w), at the nodes

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The energies at points (..., 2), from the source or to the goal, (...)."""
        places = self.medium.places(points)
        return self._at(places.reshape(-1, 2)).reshape(places.shape[:-1])

    def path(self, point: np.ndarray) -> np.ndarray:
        """A least-time path, (n, 2), from the source to a point, or from the point to the goal; empty if none."""
        back = trace(self._at, self._flow, self._ends, self.medium.places(point))
        return self.medium.points(back if self.to_goal else back[::-1])

    def _at(self, places: np.ndarray) -> np.ndarray:
        return values_at(self.values, self._problem, self._flow.field, self._ends, places)

    @cached_property
    def _flow(self) -> Medium:
        return self.medium.reversed if self.to_goal else self.medium

    @cached_property
    def _ends(self) -> np.ndarray:
        return self.medium.places(self.ends)

    @cached_property
    def _problem(self) -> Problem:
        return _problem(self._flow, self._ends, self.factored)


def energies_from(medium: Medium, source: np.ndarray, factored: bool = True) -> EnergyMap:
    """Energies from a source (2,), or from the nearest of several (k, 2), to everywhere.

    `factored` takes the closed form in the source's own current out of what is interpolated; there is none for
    several sources, or for a current that carries the vehicle away from its source.

    >>> still = Medium(np.zeros((21, 21, 2)), speed=2.0)
    >>> energies_from(still, np.array([10.0, 10.0]))(np.array([13.0, 14.0])).round(6).tolist()
    2.5
    """
    return _solve(medium, source, False, factored)


def energies_to(medium: Medium, goal: np.ndarray, factored: bool = True) -> EnergyMap:
    """Energies from everywhere to a goal (2,), or to the nearest of several (k, 2)."""
    return _solve(medium, goal, True, factored)


def _solve(medium: Medium, ends: np.ndarray, to_goal: bool, factored: bool) -> EnergyMap:
    ends = np.atleast_2d(np.asarray(ends, dtype=np.float64))
    if ends.ndim != 2 or len(ends) == 0:
        raise InputError(f"Give one point (2,) or several (k, 2), not {ends.shape}.")
    places = medium.places(ends)
    walled = ~medium.free[tuple(np.rint(places).astype(int).T)]
    if walled.any():
        raise InputError(f"The {'goal' if to_goal else 'source'} {ends[walled][0].tolist()} lies inside a wall.")
    problem = _problem(medium.reversed if to_goal else medium, places, factored)
    values = problem.start.copy()
    sweep(values, problem, ROUGH, rounds=values.size)
    sweep(values, problem._replace(smooth=True), FINE, rounds=ROUNDS)
    return EnergyMap(medium, ends, to_goal, problem.frame.factored, values)


def _problem(flow: Medium, sources: np.ndarray, factored: bool) -> Problem:
    steps = (float(flow.spacing[0]), float(flow.spacing[1]))
    source = (float(sources[0, 0]), float(sources[0, 1]))
    frame = Frame(steps, source, sample_field(flow.field, *source), factored and len(sources) == 1)
    if not np.isfinite(plain_times(flow.shape, frame)).all():
        frame = frame._replace(factored=False)
    torrent = bool(_drift(flow.field).max() >= 1)
    reach = max(flow.shape) if torrent else LONG_RADIUS  # in a torrent interpolation frays what can be reached
    by_wall = flow.free & binary_dilation(~flow.free, np.ones((2 * RADIUS + 1, 2 * RADIUS + 1)))
    return Problem(
        frame=frame,
        halfway=_halfway(flow.field),
        passable=flow.free,
        start=start_times(flow.field, flow.free, steps, sources, reach),
        plain=plain_times(flow.shape, frame),
        by_wall=by_wall,
        seen=look_round(flow.free, by_wall),
        smooth=False,
        torrent=torrent,
    )


def _drift(field: np.ndarray) -> np.ndarray:
    """|W|² in the metric of own motion, (h, w): 1 where the current is as fast as the vehicle."""
    wx, wy, gxx, gxy, gyy = np.moveaxis(field, -1, 0)
    return gxx * wx**2 + 2 * gxy * wx * wy + gyy * wy**2


def _halfway(field: np.ndarray) -> np.ndarray:
    """The field at nodes and halfway between neighbours, (h, w, 5) → (2h − 1, 2w − 1, 5)."""
    height, width, _ = field.shape
    fine = np.empty((2 * height - 1, 2 * width - 1, 5))
    fine[::2, ::2] = field
    fine[1::2, ::2] = (field[1:] + field[:-1]) / 2
    fine[:, 1::2] = (fine[:, :-1:2] + fine[:, 2::2]) / 2
    return fine
