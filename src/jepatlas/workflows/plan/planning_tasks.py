"""Where an agent plans: the world, checked against that of its training, and tasks in it.

Matching shapes are not enough: an arm could otherwise be driven by a model of rooms. So a world of another kind is
refused, except between flat worlds, which share their actions. Other differences are reported. An episode file records
its world if `jepatlas collect` wrote it; otherwise the report says that the world could not be checked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from jepatlas.core.errors import InputError, check_count
from jepatlas.core.seeding import numpy_generator
from jepatlas.data import network_shape
from jepatlas.recipes import AnyActionWorld
from jepatlas.workflows.plan.trained_world_model import TrainedModel
from jepatlas.worlds import ActionWorld, FlatWorld
from jepatlas.worlds.action_world import draw_starts
from jepatlas.worlds.currents import exceeds_agent_speed

__all__ = ["Place", "Tasks", "check_observations", "check_reachable", "draw_tasks", "place_of"]


@dataclass(frozen=True)
class Tasks:
    starts: np.ndarray  # (b, n)
    goals: np.ndarray  # (b, n)


def draw_tasks(world: ActionWorld, count: int, seed: int) -> Tasks:
    """Random starts, and goals that can be reached from them; independent of the training data."""
    check_count("tasks", count)
    rng = numpy_generator(seed, "tasks")
    starts = draw_starts(world, count, rng)
    return Tasks(starts, world.goals(starts, rng))


@dataclass(frozen=True)
class Place:
    """The world that an agent plans in."""

    world: AnyActionWorld
    differences: str = ""  # from the world of the training; empty if there are none
    known: bool = True  # whether the world of the training is known

    @property
    def note(self) -> str:
        """A sentence for the record if the world is not that of the training; else empty."""
        if not self.known:
            return "The run's file does not record its world, so this world was not compared with it."
        return f"The run was trained on another world: {self.differences}." if self.differences else ""


def place_of(model: TrainedModel, given: AnyActionWorld | None, run: str) -> Place:
    """The given world, or by default the run's own; raises InputError if the model cannot act in it."""
    own, world = model.world, given or model.world
    if model.environment is not None:
        raise InputError(
            f"{run} was trained on episodes of '{model.environment}', which is no world of jepatlas. Leave the world "
            "out to drive there."
        )
    if world is None:
        raise InputError(f"{run} was trained on a file that does not record its world. Name the world with --world.")
    if own is not None and own.kind != world.kind and not (isinstance(own, FlatWorld) and isinstance(world, FlatWorld)):
        raise InputError(
            f"{run} was trained on the world '{own.kind}', whose observations and actions differ from those of "
            f"'{world.kind}'. Omit --world, or train on '{world.kind}'."
        )
    check_observations(model, world)
    if own is None:
        return Place(world, known=False)
    return Place(world, differences(own, world))


def check_observations(model: TrainedModel, world: AnyActionWorld) -> None:
    """Raise InputError unless observations of the world have the shape that the model takes."""
    observation = world.observe(world.states(1, np.random.default_rng(0)))
    shape, expected = network_shape(observation.shape[1:]), model.data.shape
    if shape != expected:
        raise InputError(
            f"The run was trained on observations of shape {expected}, but those of the world '{world.kind}' have "
            f"shape {shape}. Choose a world with the same observations."
        )


def differences(own: AnyActionWorld, world: AnyActionWorld) -> str:
    """
    >>> from jepatlas.worlds import Rooms
    >>> differences(Rooms(size="big"), Rooms(one_way=True))
    "size 'big', not 'small'; one_way False, not True"
    """
    if own.kind != world.kind:
        return f"'{own.kind}', not '{world.kind}'"
    parts = []
    for field in fields(own):
        trained, now = getattr(own, field.name), getattr(world, field.name)
        if trained != now:
            parts.append(f"{field.name} {trained!r}, not {now!r}")
    return "; ".join(parts)


def check_reachable(world: AnyActionWorld, start: np.ndarray, goal: np.ndarray) -> str:
    """Raise InputError if one-way doors block every path, (1, n) each; returns a warning about fast currents or ""."""
    if not isinstance(world, FlatWorld):
        return ""
    if not world.connected(start, goal)[0]:
        raise InputError(
            f"The goal {goal[0].tolist()} cannot be reached from {start[0].tolist()}: a one-way door blocks every path "
            "and the energy is +∞. Choose another start or goal."
        )
    if exceeds_agent_speed(world.current):
        return "The current is as fast as the agent in places, so the goal may be unreachable."
    return ""
