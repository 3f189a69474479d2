"""Worlds of the plane: an agent among walls in the box [−1, 1]², perhaps in a current, seen from above.

    x' = slide(x, s · (u / max(1, |u|) + W(x)))

One step is a unit of time; in it the agent goes s in any direction, and a current W, in units of its own speed, carries
it along. Without a current the least number of steps is the length of a shortest path over s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.worlds.action_world import draw_until
from jepatlas.worlds.cameras import Camera
from jepatlas.worlds.carried import carried_ways, on_a_way, too_fast
from jepatlas.worlds.collisions import slide
from jepatlas.worlds.current_fields import AnyCurrent
from jepatlas.worlds.drawing import draw_agents, draw_ground
from jepatlas.worlds.environment import ActionEnv
from jepatlas.worlds.medium_arrays import on_grid
from jepatlas.worlds.visibility import Geodesics, check_places
from jepatlas.worlds.walls import Walls

__all__ = ["FlatWorld"]

ROOM = 2.0  # times its reach that a start must let one get away, or there were hardly any goals to draw


class FlatWorld(ABC):
    """What rooms and mazes share; they say where walls stand, and how large agent and step are."""

    kind: ClassVar[str]
    reach: float
    current: AnyCurrent | None
    camera: Camera

    @property
    @abstractmethod
    def step_length(self) -> float:
        """How far the agent goes in a step."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """Of the agent, which keeps its centre that far from walls."""

    @property
    @abstractmethod
    def thickness(self) -> float:
        """Of the walls."""

    @abstractmethod
    def build_walls(self) -> Walls:
        """Walls and doors within the box."""

    @property
    def state_dim(self) -> int:
        return 2

    @property
    def action_dim(self) -> int:
        return 2

    def make(self, render_mode: str | None = "rgb_array") -> ActionEnv:
        """The gymnasium environment."""
        return ActionEnv(self, render_mode)

    def check_flat(self) -> None:
        """Refuse what all flat worlds refuse. For `__post_init__`."""
        check_argument("reach", self.reach, 0 < self.reach < math.inf, "a positive and finite number of steps")

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        check_count("count", count)
        limit = 1 - self.radius
        return draw_until(lambda k: rng.uniform(-limit, limit, (k, 2)), lambda _, x: self.admits(x), count)

    def starts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """States from which there is somewhere to go: a current that is too fast holds what is in a corner."""
        if not too_fast(self.current):
            return self.states(count, rng)

        def fits(_: np.ndarray, states: np.ndarray) -> np.ndarray:
            ends = carried_ways(self.step, states, self.step_length, rng)[:, :, -1]
            away = np.linalg.norm(ends - states[:, None], axis=-1).max(1)
            return away > ROOM * self.reach * self.step_length

        return draw_until(lambda k: self.states(k, rng), fits, count)

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """None is behind doors that do not lead there, or where a current that is too fast does not let one get."""
        ways = carried_ways(self.step, states, self.step_length, rng) if too_fast(self.current) else None

        def fits(rows: np.ndarray, goals: np.ndarray) -> np.ndarray:
            far = ~self.reached(states[rows], goals) & self.lead_there(states[rows], goals)
            if ways is not None:
                far[far] = on_a_way(ways[rows[far]], goals[far], self.reached)
            return far

        return draw_until(lambda k: self.states(k, rng), fits, len(states))

    def admits(self, states: np.ndarray) -> np.ndarray:
        return ~self._met.inside(states) & (np.abs(states) <= 1).all(-1)

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        velocity = actions / np.maximum(1.0, np.linalg.norm(actions, axis=-1, keepdims=True))
        if self.current is not None:
            velocity = velocity + self.current.velocity(states)
        return slide(self._met, states, self.step_length * velocity)

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Whether the goal is at most `reach` steps away, in a straight line that neither wall nor door bars."""
        near = np.linalg.norm(goals - states, axis=-1) <= self.reach * self.step_length
        near[near] = self._met.clear(states[near], goals[near])
        return near

    def render(self, states: np.ndarray) -> np.ndarray:
        return draw_agents(self._ground, self.camera, states, self.radius)

    def observe(self, states: np.ndarray) -> np.ndarray:
        return self.render(states)

    def distance_to(self, goal: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The least number of steps from each state to the goal, in parts of steps; +∞ where there is no way."""
        return self._geodesics.to(*self._places(goal, states)) / self.step_length

    def distance_from(self, start: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The least number of steps from the start to each state."""
        return self._geodesics.from_(*self._places(start, states)) / self.step_length

    def lead_there(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Whether doors lead from each state to its goal, (b, 2), (b, 2) → (b,): no current leads through a wall."""
        if self._met.solid.all():
            return np.ones(len(states), dtype=bool)
        ways = zip(states, goals, strict=True)
        return np.array([np.isfinite(self._geodesics.to(goal, state[None])[0]) for state, goal in ways], dtype=bool)

    def medium_arrays(self, resolution: int) -> dict[str, Any]:
        """Current, speed and walls on a grid, as an eikonal solver takes them: its times are steps."""
        if not self._met.solid.all():
            raise InputError(f"'{self.kind}' has one-way doors, which no medium holds. Set one_way to false.")
        limit, thinnest = 1 - self.radius, self.thickness + 2 * self.radius
        check_count("resolution", resolution, minimum=math.ceil(4 * limit / thinnest) + 1)  # or walls would leak
        return on_grid(limit, resolution, self.current, self.step_length, self.admits)

    @cached_property
    def walls(self) -> Walls:
        """As they are seen, without those round the box."""
        return self.build_walls()

    @cached_property
    def _met(self) -> Walls:
        """The walls as the agent's centre meets them."""
        return self.walls.closed(1.0).grown(self.radius)

    @cached_property
    def _geodesics(self) -> Geodesics:
        return Geodesics(self._met)

    @cached_property
    def _ground(self) -> np.ndarray:
        return draw_ground(self.camera, self.walls, self.thickness)

    def _places(self, place: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.current is not None:
            raise InputError(
                "In a current shortest paths are not the quickest, so there is no exact distance here. Hand "
                "`medium_arrays` to the eikonal solver (energy.exact.Medium, energies_to), or set current to none."
            )
        return check_places(place, states, self.admits)
