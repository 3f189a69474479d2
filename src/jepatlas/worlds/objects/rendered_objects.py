"""Objects on a turntable, seen by several cameras at once.

A state is (category, instance, azimuth, elevation, light): the object, its rotation, the elevation of the ring of
cameras, and the light. A view is one camera of the ring; camera k is in direction k · angle. Turning the object changes
the state; choosing another camera does not. The setup follows smallNORB, with simultaneous cameras.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.worlds.mujoco_canvas import RenderedWorld
from jepatlas.worlds.objects.catalogue import CATEGORIES, Category, build, floor_colour
from jepatlas.worlds.objects.object_rendering import LIGHT_NAMES, LIGHTS, Lighting, ObjectRenderer

__all__ = ["RenderedObjects", "state_columns"]

LOWEST, HIGHEST = 15, 85  # elevations in degrees; from lower ones a camera would see beyond the floor


@dataclass(frozen=True)
class RenderedObjects(RenderedWorld[ObjectRenderer]):
    """Every combination of the fields is a state. Rendering opens an OpenGL context; `close` or `with` releases it.

    A state's image depends only on the seed, the size, and the camera's direction and floor. Worlds that differ in
    other fields render their common states identically. Images are bitwise reproducible for one version of MuJoCo,
    NumPy and the OpenGL driver.
    """

    kind: ClassVar[str] = "objects"

    categories: tuple[Category, ...] = ("animal", "car", "plane", "chair", "lamp", "mug")
    """Categories of objects; the label of a state."""
    instances: int = 10
    """Number of objects per category, each with its own lengths and colours."""
    first_instance: int = 0
    """Number of the first instance; another value gives other objects of the same categories."""
    azimuths: int = 12
    """Number of rotations of each object, evenly spaced over the range."""
    azimuth_range: tuple[float, float] = (0.0, 360.0)
    """Range of the rotations in degrees, without its end."""
    elevations: tuple[float, ...] = (20.0, 40.0, 60.0)
    """Elevations of the cameras in degrees above the floor, from 15 to 85."""
    lights: tuple[Lighting, ...] = ("morning", "noon", "evening")
    """Lighting conditions."""
    cameras: int = 2
    """Number of cameras that see each state."""
    angle: float = 160.0
    """Angle between neighbouring cameras, in degrees. If it is a multiple of the step between azimuths, one camera sees
    what another one sees of a different state, except for light and floor."""
    floors: Literal["own", "same"] = "own"
    """Whether each camera has a floor (which fills the background) in its own colour."""
    size: int = 64
    """Pixels along a side."""
    seed: int = 0
    """Seed of objects and floors."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("instances", "azimuths", "cameras"):
            check_count(name, getattr(self, name))
        for name in ("first_instance", "seed"):
            check_count(name, getattr(self, name), minimum=0)
        for name in ("categories", "elevations", "lights"):
            value = getattr(self, name)
            distinct = isinstance(value, tuple) and 0 < len(value) == len(set(value))
            check_argument(name, value, distinct, "a tuple of distinct values")
        for elevation in self.elevations:
            allowed = f"from {LOWEST} to {HIGHEST} degrees"
            check_argument("elevations", elevation, LOWEST <= elevation <= HIGHEST, allowed)
        start, end = self.azimuth_range
        check_argument(
            "azimuth_range",
            self.azimuth_range,
            -360 <= start < end <= 360 and end - start <= 360,
            "an increasing range of at most 360 degrees between -360 and 360",
        )
        _check_cameras(self.cameras, self.angle)
        check_argument("size", self.size, 16 <= self.size <= 512, "from 16 to 512 pixels")

    @property
    def directions(self) -> tuple[float, ...]:
        """The direction of each camera, in degrees."""
        return tuple(camera * self.angle % 360 for camera in range(self.cameras))

    @property
    def views(self) -> tuple[str, ...]:
        """The cameras' names, by their directions."""
        return tuple(f"camera{direction:03.10g}" for direction in self.directions)

    def states(self) -> np.ndarray:
        """All states, (n, 5): indices of category and light in the catalogue, and angles in degrees.

        >>> world = RenderedObjects(("car",), instances=2, azimuths=2, elevations=(30.0,), lights=("noon",))
        >>> world.states().tolist()[1:3]
        [[1.0, 0.0, 180.0, 30.0, 1.0], [1.0, 1.0, 0.0, 30.0, 1.0]]
        """
        start, end = self.azimuth_range
        combinations = product(
            [CATEGORIES.index(name) for name in self.categories],
            range(self.first_instance, self.first_instance + self.instances),
            (start + (end - start) * np.arange(self.azimuths) / self.azimuths) % 360,
            self.elevations,
            [LIGHT_NAMES.index(name) for name in self.lights],
        )
        return np.array(list(combinations), dtype=np.float64)

    def view_frames(self, states: np.ndarray, camera: int) -> np.ndarray:
        """Images of states by one of the world's cameras: (b, size, size, 3) bytes."""
        check_argument("camera", camera, 0 <= camera < self.cameras, f"a number from 0 to {self.cameras - 1}")
        return self.frames(states, self.directions[camera], floor=camera if self.floors == "own" else 0)

    def frames(self, states: np.ndarray, direction: float | np.ndarray = 0.0, floor: int = 0) -> np.ndarray:
        """Images by a camera in any direction, or in one direction per state: (b, size, size, 3) bytes.

        States need not be among `states()`: angles are continuous, and all categories and instances exist.
        """
        states = _check_states(states)
        directions = np.asarray(direction, dtype=np.float64)
        if directions.shape not in ((), (len(states),)) or not np.isfinite(directions).all():
            raise InputError(
                f"direction must be one finite number of degrees, or one per state ({len(states)}), "
                f"but its shape is {directions.shape}."
            )
        directions = np.broadcast_to(directions, (len(states),))
        images = np.empty((len(states), self.size, self.size, 3), np.uint8)
        colour = floor_colour(self.seed, floor)
        placed = None
        self._renderer.make_current()
        for row in np.lexsort((states[:, 1], states[:, 0])):
            category, instance, azimuth, elevation, light_index = states[row].tolist()
            if placed != (category, instance):
                placed = (category, instance)
                self._renderer.place(build(CATEGORIES[int(category)], int(instance), self.seed))
            light = LIGHTS[LIGHT_NAMES[int(light_index)]]
            self._renderer.draw(images[row], (float(directions[row]), elevation), azimuth, light, colour)
        return np.ascontiguousarray(images[:, ::-1])  # OpenGL stores lines from bottom to top

    def open_renderer(self) -> ObjectRenderer:
        return ObjectRenderer(self.size)


def state_columns(states: np.ndarray) -> dict[str, list[str]]:
    """Columns of a multi-view table from rows (category, instance, azimuth, elevation, light); a group is an object.

    >>> state_columns(np.array([[1.0, 3.0, 90.0, 40.0, 1.0]]))["state"]
    ['car03-a90-e40-noon']
    """
    names = ("state", "label", "group", "instance", "azimuth", "elevation", "lighting")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for category, instance, azimuth, elevation, light in states.tolist():
        label, number, lighting = CATEGORIES[int(category)], f"{instance:02.0f}", LIGHT_NAMES[int(light)]
        turn, height = f"{azimuth:.10g}", f"{elevation:.10g}"
        state = f"{label}{number}-a{turn}-e{height}-{lighting}"
        values = (state, label, f"{label}{number}", number, turn, height, lighting)
        for name, value in zip(names, values, strict=True):
            columns[name].append(value)
    return columns


def _check_cameras(count: int, angle: float) -> None:
    """Two cameras in the same direction would be one view with two names."""
    check_argument("angle", angle, math.isfinite(angle), "a finite number of degrees")
    if len({round(camera * angle % 360, 6) % 360 for camera in range(count)}) < count:
        raise InputError(
            f"With cameras={count} and angle={angle:g}, two cameras have the same direction. "
            f"Use another angle, such as {360 / count:g}, or fewer cameras."
        )


def _check_states(states: np.ndarray) -> np.ndarray:
    """Rows of (category, instance, azimuth, elevation, light), as float64."""
    states = np.asarray(states, dtype=np.float64)
    if states.ndim != 2 or states.shape[1] != 5 or not np.isfinite(states).all():
        raise InputError(
            "states must be rows of five finite numbers (category, instance, azimuth, elevation, light), "
            f"but their shape is {states.shape}."
        )
    for name, column, end in (("category", 0, len(CATEGORIES)), ("instance", 1, math.inf), ("light", 4, len(LIGHTS))):
        values = states[:, column]
        bad = values[(values < 0) | (values >= end) | (values % 1 != 0)]
        if bad.size:
            raise InputError(f"A state has the {name} {bad[0]:g}, but it must be a whole number from 0 to below {end}.")
    elevation = states[:, 3]
    bad = elevation[(elevation < LOWEST) | (elevation > HIGHEST)]
    if bad.size:
        raise InputError(f"A state has the elevation {bad[0]:g}, but it must be from {LOWEST} to {HIGHEST} degrees.")
    return states
