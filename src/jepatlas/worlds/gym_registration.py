"""Registration of the worlds with gymnasium: `gymnasium.make("jepatlas/Rooms-v0", one_way=True)`.

Apart from `jepatlas.worlds.environment`, whose import of gymnasium may be what calls `register_environments`.
"""

from __future__ import annotations

import gymnasium

from jepatlas.worlds.linear_quadratic import LinearQuadratic
from jepatlas.worlds.maze import Maze
from jepatlas.worlds.reacher import Reacher
from jepatlas.worlds.rooms import Rooms

__all__ = ["REGISTERED", "environment_id", "register_environments"]

REGISTERED = {world.kind: world for world in (Rooms, Maze, Reacher, LinearQuadratic)}


def register_environments() -> None:
    """Make the worlds available to `gymnasium.make`, with the world's fields as keywords."""
    for kind, world in REGISTERED.items():
        gymnasium.register(
            environment_id(world),
            entry_point="jepatlas.worlds.environment:make_environment",
            kwargs={"kind": kind},
        )


def environment_id(world: type) -> str:
    return f"jepatlas/{world.__name__}-v0"
