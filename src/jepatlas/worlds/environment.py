"""A world with actions as a gymnasium environment.

`reset(options={"state": z, "goal": g})` sets the state and the goal. Omitted options are drawn at random.
`"goal": None` gives an episode without a goal, which never terminates. With a goal the reward is −1 per step until the
goal is reached; without one it is 0. `info` holds the exact "state", the "goal" (NaN if there is none) and "success".
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from jepatlas.core.config import from_plain, to_plain
from jepatlas.core.errors import InputError, check_argument, check_count, did_you_mean
from jepatlas.worlds.action_world import ActionWorld, draw_starts
from jepatlas.worlds.gym_registration import REGISTERED, environment_id, environment_of

__all__ = ["ActionEnv", "make_environment"]

OPTIONS = ("state", "goal")


def make_environment(kind: str, render_mode: str | None = None, **fields: Any) -> ActionEnv:
    """The environment of a world with these settings, which may be plain data, as in a file."""
    plain = {name: to_plain(value) for name, value in fields.items()}
    world: Any = from_plain(REGISTERED[kind], plain, f"the settings of {kind}")
    return ActionEnv(world, render_mode)


class ActionEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """Single episodes of a world; observations are images in uint8, or numbers in float64 for worlds without images."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (gymnasium's own declaration)

    def __init__(self, world: ActionWorld, render_mode: str | None = None) -> None:
        self.world = world
        self.render_mode = render_mode
        modes = self.metadata["render_modes"] if hasattr(world, "render") else []
        self.metadata = self.metadata | {"render_modes": modes}
        check_argument(
            "render_mode", render_mode, render_mode in (None, *modes), f"one of {[None, *modes]} for '{world.kind}'"
        )
        # Lets tools copy the environment with gymnasium.make.
        self.spec = _spec_of(world)
        check_count("action_dim", world.action_dim)
        self.action_space = Box(-1.0, 1.0, (world.action_dim,), np.float32)
        self.observation_space = _observation_space(world)
        self.state: np.ndarray | None = None
        self.goal: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        for key in options:
            if key not in OPTIONS:
                raise InputError(f"reset: unknown option '{key}'. {did_you_mean(str(key), OPTIONS)}")
        without_goal = "goal" in options and options["goal"] is None
        if options.get("state") is not None:
            state = self._check_state("state", options["state"])
        elif without_goal:
            state = self.world.states(1, self.np_random)[0]
        else:
            state = draw_starts(self.world, 1, self.np_random)[0]
        self.state = state
        if without_goal:
            self.goal = None
        elif "goal" in options:
            self.goal = self._check_state("goal", options["goal"])
        else:
            self.goal = self.world.goals(state[None], self.np_random)[0]
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = np.asarray(action, dtype=np.float64)
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            raise InputError(f"action must be {self.world.action_dim} finite numbers, but it is {action}.")
        self.state = self.world.step(self._current_state()[None], np.clip(action, -1.0, 1.0)[None])[0]
        info = self._info()
        reward = 0.0 if self.goal is None else -1.0
        return self._observation(), reward, info["success"], False, info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        return self.world.render(self._current_state()[None])[0]  # pyright: ignore[reportAttributeAccessIssue]

    def close(self) -> None:
        """Release the world's renderer, if it has one; the next image opens it again."""
        close = getattr(self.world, "close", None)
        if close is not None:
            close()

    def _current_state(self) -> np.ndarray:
        if self.state is None:
            raise InputError("The environment has no state yet. Call reset() before step() and render().")
        return self.state

    def _observation(self) -> np.ndarray:
        return self.world.observe(self._current_state()[None])[0]

    def _info(self) -> dict[str, Any]:
        state, goal = self._current_state(), self.goal
        if goal is None:
            return {"state": state.copy(), "goal": np.full_like(state, np.nan), "success": False}
        success = bool(self.world.reached(state[None], goal[None])[0])
        return {"state": state.copy(), "goal": goal.copy(), "success": success}

    def _check_state(self, name: str, value: object) -> np.ndarray:
        state, dim = np.asarray(value, dtype=np.float64), self.world.state_dim
        if state.shape != (dim,) or not np.isfinite(state).all() or not self.world.admits(state[None])[0]:
            raise InputError(
                f"reset: the {name} {state.tolist()} is not admissible in the world '{self.world.kind}'. "
                f"Give {dim} finite numbers inside the world and outside its walls; world.states draws such states."
            )
        return state


def _spec_of(world: ActionWorld) -> EnvSpec:
    """With settings as plain data, which files can record, unless the class of the world is the user's own."""
    if type(world) in REGISTERED.values():
        return environment_of(to_plain(world))
    entry_point = "jepatlas.worlds.environment:ActionEnv"
    return EnvSpec(environment_id(type(world)), entry_point=entry_point, kwargs={"world": world})


def _observation_space(world: ActionWorld) -> Box:
    """Inferred from one observation: images in 0..255, or unbounded numbers."""
    check_count("state_dim", world.state_dim)
    states = world.states(1, np.random.default_rng(0))
    if states.shape != (1, world.state_dim) or not np.isfinite(states).all():
        raise InputError(
            f"'{world.kind}'.states must return rows of {world.state_dim} finite numbers, but it returned {states}."
        )
    observation = world.observe(states)[0]
    if observation.dtype == np.uint8:
        return Box(0, 255, observation.shape, np.uint8)
    if observation.dtype != np.float64 or not np.isfinite(observation).all():
        raise InputError(
            f"'{world.kind}'.observe must return images in uint8 or finite numbers in float64, but it returned "
            f"{observation.dtype} with values {observation.ravel()[:3]}..."
        )
    return Box(-np.inf, np.inf, observation.shape, np.float64)
