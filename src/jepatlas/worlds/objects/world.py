"""Objects on a turntable, seen by several cameras at once: the rendered multi-view world.

A state is (category, instance, azimuth, elevation, light): which object, how far it is turned, how high the ring of
cameras stands, and the light. A view is one camera of the ring; camera k stands in direction k · angle. Turning the
object changes the state; which camera sees it does not. As in smallNORB, but with all cameras at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

import numpy as np

from jepatlas.core.config import check_literals
from jepatlas.core.errors import check_argument, check_count
from jepatlas.worlds.drawn import DrawnWorld
from jepatlas.worlds.objects.catalogue import CATEGORIES, Category, build, floor_colour
from jepatlas.worlds.objects.config_checks import (
    check_angles,
    check_cameras,
    check_directions,
    check_distinct,
    check_states,
)
from jepatlas.worlds.objects.lights import LIGHT_NAMES, LIGHTS, Lighting
from jepatlas.worlds.objects.rendering import ObjectRenderer

__all__ = ["RenderedObjects"]


@dataclass(frozen=True)
class RenderedObjects(DrawnWorld[ObjectRenderer]):
    """Every combination of the fields is a state. Drawing opens an OpenGL context; `close`, or `with`, gives it back.

    A state's picture depends on the seed, the size, the camera's direction and floor, and on nothing else here: worlds
    that differ in what they show draw what both show alike. Bits are the same for one version of MuJoCo, NumPy and the
    OpenGL driver.
    """

    kind: ClassVar[str] = "objects"

    categories: tuple[Category, ...] = ("animal", "car", "plane", "chair", "lamp", "mug")
    """Kinds of objects; the label of a state."""
    instances: int = 10
    """Objects of each category, each with lengths and colours of its own."""
    first_instance: int = 0
    """Number of the first of them; another one gives other objects of the same kinds."""
    azimuths: int = 12
    """How many directions an object is turned to, evenly over the range."""
    azimuth_range: tuple[float, float] = (0.0, 360.0)
    """From where to where it is turned, in degrees; the end is left out."""
    elevations: tuple[float, ...] = (20.0, 40.0, 60.0)
    """How high the cameras stand, in degrees above the floor: from 15 to 85."""
    lights: tuple[Lighting, ...] = ("morning", "noon", "evening")
    """Where light comes from."""
    cameras: int = 2
    """How many see each state."""
    angle: float = 160.0
    """From one camera to the next, in degrees. Where it is a multiple of the step between azimuths, one camera sees
    just what the other sees of another state, but for light and floor."""
    floors: Literal["own", "same"] = "own"
    """Whether each camera sees the floor, which fills the background, in a colour of its own."""
    size: int = 64
    """Pixels along a side."""
    seed: int = 0
    """Objects and floors are drawn from it."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name, least in (("instances", 1), ("azimuths", 1), ("cameras", 1), ("first_instance", 0), ("seed", 0)):
            check_count(name, getattr(self, name), least)
        for name in ("categories", "elevations", "lights"):
            check_distinct(name, getattr(self, name))
        check_angles(self.elevations, self.azimuth_range)
        check_cameras(self.cameras, self.angle)
        check_argument("size", self.size, 16 <= self.size <= 512, "from 16 to 512 pixels")

    @property
    def directions(self) -> tuple[float, ...]:
        """Where each camera stands, in degrees."""
        return tuple(camera * self.angle % 360 for camera in range(self.cameras))

    @property
    def views(self) -> tuple[str, ...]:
        """The cameras' names, by their directions."""
        return tuple(f"camera{direction:03.10g}" for direction in self.directions)

    def states(self) -> np.ndarray:
        """Every combination once, (n, 5): numbers of category and light among all there are, and angles in degrees.

        >>> world = RenderedObjects(("car",), instances=2, azimuths=2, elevations=(30.0,), lights=("noon",))
        >>> world.states().tolist()[1:3]
        [[1.0, 0.0, 180.0, 30.0, 1.0], [1.0, 1.0, 0.0, 30.0, 1.0]]
        """
        start, end = self.azimuth_range
        turns = (start + (end - start) * np.arange(self.azimuths) / self.azimuths) % 360
        return np.array(
            list(
                product(
                    [CATEGORIES.index(name) for name in self.categories],
                    range(self.first_instance, self.first_instance + self.instances),
                    turns,
                    self.elevations,
                    [LIGHT_NAMES.index(name) for name in self.lights],
                )
            ),
            dtype=np.float64,
        )

    def seen(self, states: np.ndarray, camera: int) -> np.ndarray:
        """What one of the world's cameras sees of states: (b, size, size, 3) bytes."""
        check_argument("camera", camera, 0 <= camera < self.cameras, f"a number from 0 to {self.cameras - 1}")
        return self.frames(states, self.directions[camera], floor=camera if self.floors == "own" else 0)

    def frames(self, states: np.ndarray, direction: float | np.ndarray = 0.0, floor: int = 0) -> np.ndarray:
        """What a camera in any direction, or in one for each state, sees: (b, size, size, 3) bytes.

        States need not be among `states()`: angles are continuous, and any seed has all categories and instances.
        """
        states = check_states(states, len(CATEGORIES), len(LIGHT_NAMES))
        directions = check_directions(direction, len(states))
        rows = np.empty((len(states), self.size, self.size, 3), np.uint8)
        colour, placed = floor_colour(self.seed, floor), None
        self._renderer.begin()
        for row in np.lexsort((states[:, 1], states[:, 0])):
            category, instance, azimuth, elevation, light = states[row].tolist()
            if placed != (category, instance):
                placed = category, instance
                self._renderer.place(build(CATEGORIES[int(category)], int(instance), self.seed))
            light = LIGHTS[LIGHT_NAMES[int(light)]]
            self._renderer.draw(rows[row], (float(directions[row]), elevation), azimuth, light, colour)
        return np.ascontiguousarray(rows[:, ::-1])  # OpenGL counts lines from below

    def _open(self) -> ObjectRenderer:
        return ObjectRenderer(self.size)
