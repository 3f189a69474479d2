"""Least times in a shear current W = (w(y), 0) by shooting: a reference that is independent of any grid.

Pontryagin's principle gives Zermelo's navigation equation for the heading θ of a vehicle of speed s,

    ẋ = s cos θ + w(y),    ẏ = s sin θ,    θ̇ = −w'(y) cos²θ        with  cos θ / (s + w cos θ)  conserved,

and every least-time path solves it. A fan of solutions leaves the source. For each target the headings that pass
closest to it are refined by Newton's method on (heading, time), and the earliest arrival is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jepatlas.core.errors import InputError

__all__ = ["Arrivals", "Shear", "shoot"]

HEADINGS = 720
FAN_STEPS = 240
STEPS = 200
REFINEMENTS = 8
STRAIGHT = (np.arange(64) + 0.5) / 64  # sample points of a straight line


@dataclass(frozen=True)
class Shear:
    """A current along x that depends on y only and is slower than the vehicle, with its derivative; both vectorised."""

    current: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    speed: float = 1.0

    def rate(self, state: np.ndarray) -> np.ndarray:
        """d(x, y, θ)/dt, (3, ...)."""
        _, y, heading = state
        cosine = np.cos(heading)
        return np.stack(
            [
                self.speed * cosine + self.current(y),
                self.speed * np.sin(heading),
                -self.slope(y) * cosine**2,
            ]
        )

    def step(self, state: np.ndarray, dt: np.ndarray | float) -> np.ndarray:
        """One step of the classical fourth-order Runge-Kutta method."""
        a = self.rate(state)
        b = self.rate(state + dt / 2 * a)
        c = self.rate(state + dt / 2 * b)
        d = self.rate(state + dt * c)
        return state + dt / 6 * (a + 2 * b + 2 * c + d)

    def path(self, source: np.ndarray, heading: np.ndarray, time: np.ndarray, steps: int = STEPS) -> np.ndarray:
        """States (x, y, θ) along the paths with the given headings and durations (...), (steps + 1, 3, ...)."""
        states = [initial_state(source, heading)]
        for _ in range(steps):
            states.append(self.step(states[-1], time / steps))
        return np.stack(states)

    def end(self, source: np.ndarray, heading: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The last state of these paths, (3, ...)."""
        state = initial_state(source, heading)
        for _ in range(STEPS):
            state = self.step(state, time / STEPS)
        return state


def initial_state(source: np.ndarray, heading: np.ndarray) -> np.ndarray:
    return np.stack([np.full_like(heading, source[0]), np.full_like(heading, source[1]), heading])


@dataclass(frozen=True)
class Arrivals:
    """Least times to targets and the initial headings that attain them; NaN headings for the source itself."""

    shear: Shear
    source: np.ndarray  # (2,)
    time: np.ndarray  # (n,)
    heading: np.ndarray  # (n,)

    def paths(self, steps: int = STEPS) -> np.ndarray:
        """The least-time paths, (n, steps + 1, 2)."""
        heading = np.nan_to_num(self.heading)
        return self.shear.path(self.source, heading, self.time, steps)[:, :2].transpose(2, 0, 1)


def shoot(shear: Shear, source: np.ndarray, targets: np.ndarray) -> Arrivals:
    """Least times from a source (2,) to targets (n, 2).

    >>> still = Shear(lambda y: 0 * y, lambda y: 0 * y)
    >>> shoot(still, np.zeros(2), np.array([[3.0, 4.0]])).time.round(6).tolist()
    [5.0]
    """
    source, targets = np.asarray(source, dtype=np.float64), np.atleast_2d(np.asarray(targets, dtype=np.float64))
    horizon = _straight_times(shear, source, targets)
    moving = horizon > 0
    which, heading, time = _starts(shear, source, targets, horizon)
    heading, time, missed = _refine(shear, source, targets[which], heading, time)
    good = (missed < 1e-9 * (1 + np.abs(targets[which]).max(-1))) & (time > 0) & (time <= horizon[which] * (1 + 1e-6))
    best, chosen = np.full(len(targets), np.inf), np.full(len(targets), np.nan)
    for k in np.flatnonzero(good):
        if time[k] < best[which[k]]:
            best[which[k]], chosen[which[k]] = time[k], heading[k]
    best[~moving] = 0.0
    if np.isinf(best).any():
        lost = targets[np.isinf(best)][0]
        raise InputError(
            f"No path was found to {lost.tolist()}: the current may vary too fast for {HEADINGS} headings."
        )
    return Arrivals(shear, source, best, chosen)


def _straight_times(shear: Shear, source: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The travel time along a straight line, (n,): an upper bound of the least time."""
    d = targets - source
    length = np.hypot(*d.T)
    nx, ny = (d / np.where(length > 0, length, 1)[:, None]).T
    w = shear.current(source[1] + STRAIGHT[:, None] * d[:, 1])
    if (np.abs(w) >= shear.speed).any():
        raise InputError(
            "Shooting requires a current slower than the vehicle everywhere. Use the eikonal solver instead."
        )
    pace = w * nx + np.sqrt(shear.speed**2 - (w * ny) ** 2)
    return 1.02 * length * (1 / pace).mean(0)  # margin for the sampling error


def _starts(
    shear: Shear, source: np.ndarray, targets: np.ndarray, horizon: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Indices of targets, headings and times to refine: the local minima of the distance from fan to target.

    All minima are used, not only the smallest, since a path can approach a target several times. The straight heading
    is added for targets closer than the first step of the fan.
    """
    headings = np.arange(HEADINGS) * (2 * np.pi / HEADINGS)
    times = np.linspace(0, horizon.max(), FAN_STEPS + 1)
    fan = shear.path(source, headings, np.full(HEADINGS, times[-1]), FAN_STEPS)[:, :2]  # (t, 2, k)
    mesh = np.hypot(*(np.roll(fan, -1, axis=2) - fan).transpose(1, 0, 2)) + 2 * shear.speed * times[1]
    ahead = np.arctan2(*(targets - source).T[::-1])
    starts = [(np.empty(0, dtype=int), [], [])]
    for which in np.flatnonzero(horizon > 0):
        away = np.hypot(*(fan - targets[which][:, None]).transpose(1, 0, 2))
        t, k = np.nonzero(_local_minima(away) & (away < mesh) & (times <= horizon[which])[:, None])
        starts.append((np.full(len(t) + 1, which), [*headings[k], ahead[which]], [*times[t], horizon[which]]))
    which, heading, time = (np.concatenate(part) for part in zip(*starts, strict=True))
    return which, heading, time


def _local_minima(away: np.ndarray) -> np.ndarray:
    """Mask of the local minima over (time, heading); headings are periodic."""
    padded = np.pad(away, ((1, 1), (0, 0)), constant_values=np.inf)
    beside = np.minimum(np.roll(away, 1, axis=1), np.roll(away, -1, axis=1))
    return away <= np.minimum(np.minimum(padded[:-2], padded[2:]), beside)


def _refine(
    shear: Shear, source: np.ndarray, targets: np.ndarray, heading: np.ndarray, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Newton's method for heading and arrival time, with the derivative by heading from a neighbouring path."""
    eps = 1e-6
    time = np.maximum(time, 1e-6)
    for _ in range(REFINEMENTS):
        both = shear.end(source, np.stack([heading, heading + eps]), np.stack([time, time]))
        end, velocity = both[:2, 0], shear.rate(both[:, 0])[:2]
        turn = (both[:2, 1] - end) / eps
        miss = targets.T - end
        area = turn[0] * velocity[1] - turn[1] * velocity[0]
        area = np.where(np.abs(area) > 1e-12, area, 1e-12)
        heading = heading + np.clip((miss[0] * velocity[1] - miss[1] * velocity[0]) / area, -0.2, 0.2)
        ahead = (turn[0] * miss[1] - turn[1] * miss[0]) / area
        time = np.maximum(time + np.clip(ahead, -0.3 * time, 0.3 * time), 1e-9)
    end = shear.end(source, heading, time)[:2]
    return heading, time, np.hypot(*(targets.T - end))
