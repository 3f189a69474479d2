"""Where an agent may drive: in the world that it was trained on, or in one that is seen and moved alike.

Shapes alone would let an arm be driven by what has only seen rooms. So another kind of world is refused, but for flat
ones, which have the same actions; and whatever else differs from what the run has seen is said. A file says what its
episodes are of, if `jepatlas collect` wrote it; where it does not, it is said that nothing could be checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from jepatlas.core.errors import InputError
from jepatlas.data import network_shape
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.plan.models import TrainedModel
from jepatlas.worlds import FlatWorld
from jepatlas.worlds.currents import exceeds_agent_speed

__all__ = ["Place", "place_of", "refuse_other_sight", "refuse_out_of_reach"]


@dataclass(frozen=True)
class Place:
    world: AnyActionWorld
    unlike: str = ""  # in what it is not the world of the run; empty where it is
    known: bool = True  # whether the world of the run is

    @property
    def said(self) -> str:
        if not self.known:
            return "The run's file does not say what its episodes are of, so whether it is this world was not checked."
        return f"The run was trained on another world: {self.unlike}." if self.unlike else ""


def place_of(model: TrainedModel, given: AnyActionWorld | None, run: str) -> Place:
    """The world that was given, or else the run's own."""
    own, world = model.world, given or model.world
    if model.environment is not None:
        raise InputError(
            f"{run} was trained on episodes of '{model.environment}', which is none of our worlds. Drive in it from "
            "Python, by jepatlas.workflows.plan.agent_of and jepatlas.planning.receding_horizon."
        )
    if world is None:
        raise InputError(
            f"{run} was trained on a file that does not say what its episodes are of, and a file cannot be driven in. "
            "Name the world: --world."
        )
    _refuse_other_kind(world, own)
    refuse_other_sight(model, world)
    return Place(world, known=False) if own is None else Place(world, unlike(own, world))


def refuse_other_sight(model: TrainedModel, world: AnyActionWorld) -> None:
    """Refuse a world that is not seen in the shape that the model takes."""
    one, expected = world.observe(world.states(1, np.random.default_rng(0))), model.data.shape
    if (seen := network_shape(one.shape[1:])) != expected:
        raise InputError(
            f"The run sees observations of the shape {expected}, but the world '{world.kind}' gives {seen}. Plan in a "
            "world that is seen as the one it was trained on."
        )


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
    if not world.connected(start, goal)[0]:
        raise InputError(
            f"The goal {goal[0].tolist()} cannot be reached from {start[0].tolist()}: the energy is +∞, because a "
            "one-way door is in between and there is no way round. Choose another start or goal."
        )
    if not exceeds_agent_speed(world.current):
        return ""
    return "The current is as fast as the agent in places: whether it lets one get to the goal was not looked at."
