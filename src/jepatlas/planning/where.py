"""Where an agent may drive: in the world that it was trained on, or in one that is seen and moved alike.

Shapes alone would let an arm be driven by what has only seen rooms. So another kind of world is refused, but for flat
ones, which have the same actions; and whatever else differs from what the run has seen is said.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from jepatlas.base.errors import InputError
from jepatlas.planning.models import TrainedModel
from jepatlas.recipes import AnyActionWorld
from jepatlas.worlds import FlatWorld

__all__ = ["Place", "place_of", "refuse_out_of_reach"]


@dataclass(frozen=True)
class Place:
    world: AnyActionWorld
    unlike: str = ""  # in what it is not the world of the run; empty where it is

    @property
    def said(self) -> str:
        return f"The run was trained on another world: {self.unlike}." if self.unlike else ""


def place_of(model: TrainedModel, given: AnyActionWorld | None, run: str) -> Place:
    """The world that was given, or else the run's own."""
    world = given or model.world
    if world is None:
        raise InputError(f"{run} was trained on a file, which cannot be driven in. Name the world: --world.")
    _refuse_other_kind(world, model.world)
    seen, expected = world.observe(world.states(1, np.random.default_rng(0))).shape[1:], model.data.shape
    seen = (seen[2], *seen[:2]) if len(seen) == 3 else seen
    if seen != expected:
        raise InputError(
            f"The run sees observations of the shape {expected}, but the world '{world.kind}' gives {seen}. Plan in a "
            "world that is seen as the one it was trained on."
        )
    return Place(world, "" if model.world is None else unlike(model.world, world))


def _refuse_other_kind(world: AnyActionWorld, own: AnyActionWorld | None) -> None:
    flat = isinstance(world, FlatWorld) and isinstance(own, FlatWorld)
    if own is not None and own.kind != world.kind and not flat:
        raise InputError(
            f"The run was trained on the world '{own.kind}', and '{world.kind}' neither looks nor moves like it. Leave "
            "out --world, or train on the other one."
        )


def unlike(own: AnyActionWorld, world: AnyActionWorld) -> str:
    """
    >>> from jepatlas.worlds import Rooms
    >>> unlike(Rooms(size="big"), Rooms(one_way=True))
    "size 'big', not 'small'; one_way False, not True"
    """
    if own.kind != world.kind:
        return f"'{own.kind}', not '{world.kind}'"
    pairs: list[tuple[str, Any, Any]] = [(f.name, getattr(own, f.name), getattr(world, f.name)) for f in fields(own)]
    return "; ".join(f"{name} {was!r}, not {now!r}" for name, was, now in pairs if was != now)


def refuse_out_of_reach(world: AnyActionWorld, start: np.ndarray, goal: np.ndarray) -> str:
    """Refuse a goal behind doors that do not lead there, (1, n) each; what a current may do is only said."""
    if not isinstance(world, FlatWorld):
        return ""
    if not world.lead_there(start, goal)[0]:
        raise InputError(
            f"The goal {goal[0].tolist()} cannot be reached from {start[0].tolist()}: the energy is +∞, because a "
            "one-way door is in between and there is no way round. Choose another start or goal."
        )
    if world.current is None or not _too_fast(world):
        return ""
    return "The current is as fast as the agent in places: whether it lets one get to the goal was not looked at."


def _too_fast(world: FlatWorld) -> bool:
    """Against a slower current one gets everywhere that one gets without it."""
    assert world.current is not None
    axis = np.linspace(-1, 1, 101)
    velocity = world.current.velocity(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2))
    return bool(np.linalg.norm(velocity, axis=-1).max() >= 1)
