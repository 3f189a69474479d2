"""Flat worlds: an agent among walls in the box [−1, 1]², optionally in a current, seen from above.

    x' = slide(x, s · (u / max(1, |u|) + W(x)))

One step is a unit of time. In it the agent moves s in any direction, and a current W, in units of the agent's speed,
carries it along. Without a current, the least number of steps is the length of a shortest path divided by s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jepatlas.core.errors import InputError, check_argument, check_count
from jepatlas.worlds.action_world import rejection_sample
from jepatlas.worlds.cameras import Camera, draw_agents, draw_ground
from jepatlas.worlds.currents import AnyCurrent, exceeds_agent_speed, exploratory_paths, on_a_path
from jepatlas.worlds.visibility import Geodesics
from jepatlas.worlds.walls import Walls, slide

if TYPE_CHECKING:
    from jepatlas.worlds.environment import ActionEnv

__all__ = ["FlatWorld"]

MIN_ESCAPE = 2.0  # a start must allow the agent to get this many times `reach` away, or hardly any goal would fit


class FlatWorld(ABC):
    """Base class of rooms and mazes, which define the walls and the sizes of agent and step."""

    kind: ClassVar[str]
    reach: float
    current: AnyCurrent | None
    camera: Camera

    @property
    @abstractmethod
    def step_length(self) -> float:
        """Distance that the agent moves in one step."""

    @property
    @abstractmethod
    def radius(self) -> float:
        """Radius of the agent; its centre keeps this distance from walls."""

    @property
    @abstractmethod
    def thickness(self) -> float:
        """Thickness of the walls."""

    @abstractmethod
    def build_walls(self) -> Walls:
        """Walls and doors inside the box."""

    @property
    def state_dim(self) -> int:
        return 2

    @property
    def action_dim(self) -> int:
        return 2

    def make(self, render_mode: str | None = "rgb_array") -> ActionEnv:
        """The gymnasium environment."""
        from jepatlas.worlds.environment import ActionEnv  # noqa: PLC0415  (gymnasium is slow to import)

        return ActionEnv(self, render_mode)

    def check_reach(self) -> None:
        """For `__post_init__` of subclasses."""
        check_argument("reach", self.reach, 0 < self.reach < math.inf, "a positive and finite number of steps")

    def states(self, count: int, rng: np.random.Generator) -> np.ndarray:
        check_count("count", count)
        limit = 1 - self.radius
        return rejection_sample(lambda k: rng.uniform(-limit, limit, (k, 2)), lambda _, x: self.admits(x), count)

    def starts(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """States that the agent can leave: a current faster than the agent may hold it in a corner."""
        if not exceeds_agent_speed(self.current):
            return self.states(count, rng)

        def accept(_: np.ndarray, states: np.ndarray) -> np.ndarray:
            ends = exploratory_paths(self.step, states, self.step_length, rng)[:, :, -1]
            farthest = np.linalg.norm(ends - states[:, None], axis=-1).max(1)
            return farthest > MIN_ESCAPE * self.reach * self.step_length

        return rejection_sample(lambda k: self.states(k, rng), accept, count)

    def goals(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Goals that doors, and a current faster than the agent, allow it to reach."""
        paths = None
        if exceeds_agent_speed(self.current):
            paths = exploratory_paths(self.step, states, self.step_length, rng)

        def accept(rows: np.ndarray, goals: np.ndarray) -> np.ndarray:
            valid = ~self.reached(states[rows], goals) & self.connected(states[rows], goals)
            if paths is not None:
                valid[valid] = on_a_path(paths[rows[valid]], goals[valid], self.reached)
            return valid

        return rejection_sample(lambda k: self.states(k, rng), accept, len(states))

    def admits(self, states: np.ndarray) -> np.ndarray:
        return ~self.collision_walls.inside(states) & (np.abs(states) <= 1).all(-1)

    def step(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        velocity = actions / np.maximum(1.0, np.linalg.norm(actions, axis=-1, keepdims=True))
        if self.current is not None:
            velocity = velocity + self.current.velocity(states)
        return slide(self.collision_walls, states, self.step_length * velocity)

    def reached(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Whether the goal is at most `reach` steps away on a free straight line."""
        near = np.linalg.norm(goals - states, axis=-1) <= self.reach * self.step_length
        near[near] = self.collision_walls.clear(states[near], goals[near])
        return near

    def render(self, states: np.ndarray) -> np.ndarray:
        return draw_agents(self._ground, self.camera, states, self.radius)

    def observe(self, states: np.ndarray) -> np.ndarray:
        return self.render(states)

    def distance_to(self, goal: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Shortest path from each state to the goal in (fractional) steps; +∞ if there is no path."""
        goal, states = self._check_points(goal, states)
        return self._geodesics.to(goal, states) / self.step_length

    def distance_from(self, start: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Shortest path from the start to each state in (fractional) steps; +∞ if there is no path."""
        start, states = self._check_points(start, states)
        return self._geodesics.from_(start, states) / self.step_length

    def connected(self, states: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Whether the walls and doors leave a path from each state to its goal, (b, 2), (b, 2) → (b,)."""
        if self.collision_walls.solid.all():
            return np.ones(len(states), dtype=bool)
        finite = []
        for state, goal in zip(states, goals, strict=True):
            finite.append(np.isfinite(self._geodesics.to(goal, state[None])[0]))
        return np.array(finite, dtype=bool)

    def medium_arrays(self, resolution: int) -> dict[str, Any]:
        """Current, speed and walls on a grid, as arguments of `energy.exact.Medium`; its times are in steps.

        Entry [i, j] of an array is at origin + (j, i) · spacing.
        """
        if not self.collision_walls.solid.all():
            raise InputError(f"'{self.kind}' has one-way doors, which a medium cannot represent. Set one_way to false.")
        limit, thinnest = 1 - self.radius, self.thickness + 2 * self.radius
        # A coarser grid could miss the thinnest wall.
        check_count("resolution", resolution, minimum=math.ceil(4 * limit / thinnest) + 1)
        axis = np.linspace(-limit, limit, resolution)
        places = np.stack(np.meshgrid(axis, axis), -1)
        velocity = np.zeros_like(places) if self.current is None else self.current.velocity(places)
        spacing = float(axis[1] - axis[0])
        return {
            "current": self.step_length * velocity,
            "speed": self.step_length,
            "passable": self.admits(places),
            "origin": (-limit, -limit),
            "spacing": (spacing, spacing),
        }

    @cached_property
    def walls(self) -> Walls:
        """The walls as drawn, without those around the box."""
        return self.build_walls()

    @cached_property
    def collision_walls(self) -> Walls:
        """The walls that the agent's centre collides with, including those around the box."""
        return self.walls.enclosed(1.0).grown(self.radius)

    @cached_property
    def _geodesics(self) -> Geodesics:
        return Geodesics(self.collision_walls)

    @cached_property
    def _ground(self) -> np.ndarray:
        return draw_ground(self.camera, self.walls, self.thickness)

    def _check_points(self, point: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point (2,) and states (b, 2) as float64; raises InputError if one is not admissible."""
        if self.current is not None:
            raise InputError(
                "Exact distances need current=None: in a current the shortest path is not the quickest. Pass "
                "`medium_arrays` to the eikonal solver (energy.exact.Medium, energies_to) instead."
            )
        if np.shape(point) != (2,) or np.shape(states)[1:] != (2,):
            raise InputError(
                "Distances need a point of shape (2,) and states of shape (b, 2), "
                f"but their shapes are {np.shape(point)} and {np.shape(states)}."
            )
        points = np.vstack([point, states]).astype(np.float64)
        allowed = self.admits(points)
        if not allowed.all():
            raise InputError(f"The point {points[~allowed][0].tolist()} is inside a wall or outside the world.")
        return points[0], points[1:]
