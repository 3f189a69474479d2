"""Two rooms, a wall between them, and a door: the usual test of whether a planner sees round a wall.

With `one_way` the door leads from the left room to the right one only, and the way back is another door at the far
end of the wall, which leads only back. From x to y and back again is then always one tour through both doors, equally
long for every x on it: so a symmetrised cost-to-go, which is half of that tour, is flat along the wall and says nothing
about which door to take, while the directed one says it everywhere. Who goes by the symmetrised one must see from one
door to the other, which in big rooms a planner does not. Without a way back it is +∞ before the door.
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
from jepatlas.worlds.current_fields import AnyCurrent
from jepatlas.worlds.flat import FlatWorld
from jepatlas.worlds.walls import Box, Walls, walls

__all__ = ["Rooms"]

WALL_LIMIT = 0.5  # neither room gets smaller than a quarter
DOOR_LIMIT = 0.7  # between a door and the corner there is always some wall


class Measures(NamedTuple):
    """In units of half the world's side."""

    step: float
    radius: float
    thickness: float
    door: float


SIZES = {"small": Measures(0.1, 0.08, 0.08, 0.44), "big": Measures(0.05, 0.06, 0.06, 0.3)}


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
    """Where the wall stands, from -0.5 to 0.5 of the world from -1 to 1; none to draw it by the seed."""
    door: float | None = 0.4
    """Where in the wall the door is, from -0.7 to 0.7; none to draw it by the seed."""
    seed: int = 0
    """Seed of what is drawn of the two."""
    one_way: bool = False
    """Whether the door leads to the right only."""
    way_back: bool = True
    """Whether a one-way door has a second one for the way back, at the far end of the wall."""
    reach: float = 1.0
    """How many steps from a goal one has reached it."""
    current: AnyCurrent | None = None
    """What carries the agent along, in units of its own speed."""
    camera: Camera = field(default_factory=Camera)
    """How it is seen."""

    def __post_init__(self) -> None:
        check_literals(self)
        self.check_flat()
        if self.wall is not None:
            check_argument(
                "wall", self.wall, abs(self.wall) <= WALL_LIMIT, f"from {-WALL_LIMIT} to {WALL_LIMIT}, or none"
            )
        if self.door is not None:
            check_argument(
                "door", self.door, abs(self.door) <= DOOR_LIMIT, f"from {-DOOR_LIMIT} to {DOOR_LIMIT}, or none"
            )
        if not self.way_back and not self.one_way:
            raise InputError("way_back is false, but the door is two-way. Set one_way, or leave way_back as it is.")

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
        """Where the wall stands, given or drawn."""
        rng = numpy_generator(self.seed, "worlds/rooms/wall")
        return rng.uniform(-WALL_LIMIT, WALL_LIMIT) if self.wall is None else self.wall

    @cached_property
    def door_at(self) -> float:
        """Where the door is, given or drawn."""
        rng = numpy_generator(self.seed, "worlds/rooms/door")
        return rng.uniform(-DOOR_LIMIT, DOOR_LIMIT) if self.door is None else self.door

    @property
    def way_back_at(self) -> float:
        """As far from the door as the wall allows."""
        return -math.copysign(1 - SIZES[self.size].door / 2, self.door_at)

    def build_walls(self) -> Walls:
        half = SIZES[self.size].door / 2
        doors = [(self.door_at, 1)] if self.one_way else []
        doors += [(self.way_back_at, -1)] if self.one_way and self.way_back else []
        gaps = sorted({self.door_at, *(at for at, _ in doors)})
        ends = [-1.0, *(side for at in gaps for side in (at - half, at + half)), 1.0]
        pieces = [self._piece(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True) if high - low > 1e-9]
        return walls(pieces, [(self._line(at - half, at + half), (way, 0)) for at, way in doors])

    def _piece(self, low: float, high: float) -> Box:
        half = self.thickness / 2
        return (self.wall_at - half, low), (self.wall_at + half, high)

    def _line(self, low: float, high: float) -> Box:
        return (self.wall_at, low), (self.wall_at, high)
