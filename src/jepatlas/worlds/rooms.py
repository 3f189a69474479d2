"""Two rooms with a wall and a door between them: tests whether a planner finds its way around a wall.

With `one_way` the door leads only from the left room to the right one, and a second door at the far end of the wall
leads only back. A round trip from x to y and back is then always a tour through both doors, of the same length for
every x on it. A symmetrised cost-to-go, half of that tour, is therefore constant along the wall and does not show which
door to take; the directed cost-to-go does. A planner with the symmetrised cost must look ahead from one door to the
other, which its horizon does not allow in big rooms. Without a way back, the symmetrised cost is +∞ before the door.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.cameras import Camera
from jepatlas.worlds.currents import AnyCurrent
from jepatlas.worlds.flat import FlatWorld
from jepatlas.worlds.walls import Walls

__all__ = ["Rooms"]

WALL_LIMIT = 0.5  # each room has at least a quarter of the world
DOOR_LIMIT = 0.7  # some wall is left between a door and the corner


class Sizes(NamedTuple):
    """In units of half the world's side."""

    step: float
    radius: float
    thickness: float
    door: float


SIZES = {"small": Sizes(0.1, 0.08, 0.08, 0.44), "big": Sizes(0.05, 0.06, 0.06, 0.3)}


@dataclass(frozen=True)
class Rooms(FlatWorld):
    """The world is 20 steps wide, or 40 with a smaller agent and a narrower door.

    >>> Rooms().step_length, Rooms(size="big").step_length
    (0.1, 0.05)
    """

    kind: ClassVar[str] = "rooms"

    size: Literal["small", "big"] = "small"
    """Whether the world is 20 or 40 steps wide."""
    wall: float | None = 0.0
    """Position of the wall, from -0.5 to 0.5 in the world from -1 to 1; none for a random one."""
    door: float | None = 0.4
    """Position of the door in the wall, from -0.7 to 0.7; none for a random one."""
    seed: int = 0
    """Seed of a random wall and door."""
    one_way: bool = False
    """Whether the door only leads from left to right."""
    way_back: bool = True
    """Whether a one-way door is paired with a second one that leads back, at the far end of the wall."""
    reach: float = 1.0
    """Distance from the goal, in steps, at which it counts as reached."""
    current: AnyCurrent | None = None
    """Current that carries the agent along, in units of its speed."""
    camera: Camera = field(default_factory=Camera)
    """Camera that renders the observations."""

    def __post_init__(self) -> None:
        check_literals(self)
        self.check_reach()
        for name, limit in (("wall", WALL_LIMIT), ("door", DOOR_LIMIT)):
            value = getattr(self, name)
            if value is not None:
                check_argument(name, value, abs(value) <= limit, f"from {-limit} to {limit}, or none")
        if not self.way_back and not self.one_way:
            raise InputError("way_back is false, but the door is two-way. Set one_way to true, or way_back to true.")

    @property
    def step_length(self) -> float:
        return SIZES[self.size].step

    @property
    def radius(self) -> float:
        return SIZES[self.size].radius

    @property
    def thickness(self) -> float:
        return SIZES[self.size].thickness

    @cached_property
    def wall_at(self) -> float:
        """Position of the wall, given or random."""
        if self.wall is not None:
            return self.wall
        return numpy_generator(self.seed, "worlds/rooms/wall").uniform(-WALL_LIMIT, WALL_LIMIT)

    @cached_property
    def door_at(self) -> float:
        """Position of the door, given or random."""
        if self.door is not None:
            return self.door
        return numpy_generator(self.seed, "worlds/rooms/door").uniform(-DOOR_LIMIT, DOOR_LIMIT)

    @property
    def way_back_at(self) -> float:
        """Position of the door that leads back: as far from the door as the wall allows."""
        return -math.copysign(1 - SIZES[self.size].door / 2, self.door_at)

    def build_walls(self) -> Walls:
        half_door = SIZES[self.size].door / 2
        half_thickness = self.thickness / 2
        doors = []
        if self.one_way:
            doors.append((self.door_at, 1))
            if self.way_back:
                doors.append((self.way_back_at, -1))
        ends = [-1.0]
        for centre in sorted({self.door_at, *(centre for centre, _ in doors)}):
            ends += [centre - half_door, centre + half_door]
        ends.append(1.0)
        pieces = []
        for low, high in zip(ends[::2], ends[1::2], strict=True):
            if high - low > 1e-9:
                pieces.append(((self.wall_at - half_thickness, low), (self.wall_at + half_thickness, high)))
        lines = []
        for centre, direction in doors:
            line = ((self.wall_at, centre - half_door), (self.wall_at, centre + half_door))
            lines.append((line, (direction, 0)))
        return Walls.build(pieces, lines)
