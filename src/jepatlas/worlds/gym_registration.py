"""Registration of the worlds with gymnasium: `gymnasium.make("jepatlas/Rooms-v0", one_way=True)`.

Imports gymnasium when it is used, because the import of gymnasium may be what calls `register_environments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jepatlas.core.lazy import lazy_import
from jepatlas.worlds.linear_quadratic import LinearQuadratic
from jepatlas.worlds.maze import Maze
from jepatlas.worlds.reacher import Reacher
from jepatlas.worlds.rooms import Rooms

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.envs import registration
else:
    gymnasium = lazy_import("gymnasium")
    registration = lazy_import("gymnasium.envs.registration")

__all__ = ["REGISTERED", "environment_id", "environment_of", "register_environments", "world_settings"]

REGISTERED = {world.kind: world for world in (Rooms, Maze, Reacher, LinearQuadratic)}


ENTRY_POINT = "jepatlas.worlds.environment:make_environment"


def register_environments() -> None:
    """Make the worlds available to `gymnasium.make`, with the world's fields as keywords."""
    for kind, world in REGISTERED.items():
        gymnasium.register(
            environment_id(world),
            entry_point=ENTRY_POINT,
            kwargs={"kind": kind},
        )


def environment_id(world: type) -> str:
    return f"jepatlas/{world.__name__}-v0"


def environment_of(settings: Mapping[str, Any]) -> registration.EnvSpec:
    """The registered environment with these settings of a world, among them its kind, as plain data."""
    return registration.EnvSpec(
        environment_id(REGISTERED[settings["kind"]]), entry_point=ENTRY_POINT, kwargs=dict(settings)
    )


def world_settings(name: str, keywords: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of the world that an environment of this id and keywords is made of; None for other environments."""
    kinds = [kind for kind, world in REGISTERED.items() if environment_id(world) == name]
    return {"kind": kinds[0], **keywords} if kinds else None
