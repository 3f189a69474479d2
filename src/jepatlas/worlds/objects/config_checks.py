"""What a world of objects refuses: in its config, and among the states it is to draw."""

from __future__ import annotations

import math

import numpy as np

from jepatlas.core.errors import InputError, check_argument

__all__ = ["check_angles", "check_cameras", "check_directions", "check_distinct", "check_states"]

LOWEST, HIGHEST = 15, 85  # elevations in degrees: from lower ones a camera would see beyond the floor


def check_distinct(name: str, given: tuple[object, ...]) -> None:
    check_argument(
        name, given, isinstance(given, tuple) and 0 < len(given) == len(set(given)), "a tuple of different ones"
    )


def check_angles(elevations: tuple[float, ...], azimuths: tuple[float, float]) -> None:
    for elevation in elevations:
        check_argument("elevations", elevation, LOWEST <= elevation <= HIGHEST, f"from {LOWEST} to {HIGHEST} degrees")
    start, end = azimuths
    allowed = -360 <= start < end <= 360 and end - start <= 360
    check_argument("azimuth_range", azimuths, allowed, "a rising range of at most 360 degrees between -360 and 360")


def check_cameras(count: int, angle: float) -> None:
    """Two cameras in one place would be one view with two names."""
    check_argument("angle", angle, math.isfinite(angle), "a number of degrees")
    if len({round(camera * angle % 360, 6) % 360 for camera in range(count)}) < count:
        raise InputError(
            f"{count} cameras, each {angle:g}° from the one before, do not all stand in different places. "
            f"Choose another angle, such as {360 / count:g}, or fewer cameras."
        )


def check_states(states: np.ndarray, categories: int, lights: int) -> np.ndarray:
    """Rows of (category, instance, azimuth, elevation, light), as float64."""
    states = np.asarray(states, dtype=np.float64)
    if states.ndim != 2 or states.shape[1] != 5 or not np.isfinite(states).all():
        raise InputError(
            f"States have the shape {states.shape}, but rows of five finite numbers are due: "
            "category, instance, azimuth, elevation, light."
        )
    for name, column, end in (("category", 0, categories), ("instance", 1, math.inf), ("light", 4, lights)):
        bad = states[(states[:, column] < 0) | (states[:, column] >= end) | (states[:, column] % 1 != 0), column]
        if bad.size:
            raise InputError(f"A state has the {name} {bad[0]:g}, but a whole number from 0 to below {end} is due.")
    outside = (states[:, 3] < LOWEST) | (states[:, 3] > HIGHEST)
    if outside.any():
        bad = states[outside, 3][0]
        raise InputError(f"A state has the elevation {bad:g}, but {LOWEST} to {HIGHEST} degrees are due.")
    return states


def check_directions(direction: float | np.ndarray, count: int) -> np.ndarray:
    """One for each state, (count,)."""
    given = np.asarray(direction, dtype=np.float64)
    if given.shape not in ((), (count,)) or not np.isfinite(given).all():
        raise InputError(
            f"Directions have the shape {given.shape}, but one finite number of degrees is due, "
            f"or {count} for as many states."
        )
    return np.broadcast_to(given, (count,))
