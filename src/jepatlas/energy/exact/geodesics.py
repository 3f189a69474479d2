"""Least-time paths traced back through a map of times T.

From a point x the path came from the p round x with the least T(p) + F(x − p): the same rule by which T was found, so
the current is accounted for where a descent along −∇T would not be. Steps are large in the open and shrink by walls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.legs import leg_times
from jepatlas.energy.exact.medium import Medium
from jepatlas.energy.exact.rings import RADIUS

__all__ = ["trace"]

RADII = RADIUS * 0.5 ** np.arange(6)
TURNS = np.arange(64) * (2 * np.pi / 64)
NUDGES = np.linspace(-1, 1, 33) * (2 * np.pi / 64)

Times = Callable[[np.ndarray], np.ndarray]
"""T at places (n, 2) → (n,)."""


def trace(times: Times, flow: Medium, sources: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Places (n, 2) from a place back to the source, both included; empty where T is +∞. It may be lost in a torrent:
    an `InputError` then.
    """
    if np.isinf(times(place[None])[0]):
        return np.empty((0, 2))
    path = [place]
    while (source := _in_sight(times, flow, sources, path[-1])) is None:
        away = np.abs(sources - path[-1]).max(-1).min()
        path.append(_back(times, flow, path[-1], RADII[away > RADII]))  # a step round the source would pass it
    return np.array([*path, source])


def _in_sight(times: Times, flow: Medium, sources: np.ndarray, place: np.ndarray) -> np.ndarray | None:
    """A source that is near, and straight back as far as T can tell; nearer than the smallest step T cannot tell."""
    near = sources[np.abs(sources - place).max(-1) <= RADIUS]
    if len(near) == 0:
        return None
    straight = _legs(flow, near, place)
    best = int(straight.argmin())
    beside = straight[best] < np.inf and np.abs(near[best] - place).max() <= RADII[-1]
    return near[best] if beside or straight[best] <= 1.01 * times(place[None])[0] else None


def _back(times: Times, flow: Medium, place: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """The place one step before: the largest step to an earlier place that is in sight."""
    now = times(place[None])[0]
    for radius in radii:
        turn = _best_turn(times, flow, place, radius, TURNS)
        turn = _best_turn(times, flow, place, radius, turn + NUDGES)
        before = place + radius * np.array([np.sin(turn), np.cos(turn)])
        if _total(times, flow, before[None], place)[0] < np.inf and times(before[None])[0] < now:
            return before
    return _back_to_node(times, flow, place, now)


def _best_turn(times: Times, flow: Medium, place: np.ndarray, radius: float, turns: np.ndarray) -> float:
    before = place + radius * np.stack([np.sin(turns), np.cos(turns)], axis=-1)
    return float(turns[_total(times, flow, before, place).argmin()])


def _back_to_node(times: Times, flow: Medium, place: np.ndarray, now: float) -> np.ndarray:
    """Through the narrowest places: the best earlier node round this place."""
    span = np.arange(-RADIUS, RADIUS + 1)
    nodes = np.rint(place) + np.stack(np.meshgrid(span, span, indexing="ij"), axis=-1).reshape(-1, 2)
    total = _total(times, flow, nodes, place)
    inside = _inside(flow, nodes)
    total[inside] = np.where(times(nodes[inside]) < now, total[inside], np.inf)
    if np.isinf(total).all():
        raise InputError(
            f"The way between {np.round(flow.points(place), 6).tolist()} and the other end was lost between the nodes, "
            "as it may be where the current is as fast as the vehicle. Use a finer grid, or ask for a point farther "
            "from the border of what can be reached."
        )
    return nodes[total.argmin()]


def _total(times: Times, flow: Medium, before: np.ndarray, place: np.ndarray) -> np.ndarray:
    """T(p) + F(x − p) for places p (n, 2) before a place x; +∞ outside the world."""
    total, inside = np.full(len(before), np.inf), _inside(flow, before)
    total[inside] = times(before[inside]) + _legs(flow, before[inside], place)
    return total


def _legs(flow: Medium, before: np.ndarray, place: np.ndarray) -> np.ndarray:
    steps = (float(flow.spacing[0]), float(flow.spacing[1]))
    return leg_times(flow.field, flow.free, steps, before, np.broadcast_to(place, before.shape).copy())


def _inside(flow: Medium, places: np.ndarray) -> np.ndarray:
    return np.all((places >= 0) & (places <= np.array(flow.shape) - 1), axis=1)
