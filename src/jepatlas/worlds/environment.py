"""Any world with actions as a gymnasium environment, so that outside tools can drive it.

`reset(options={"state": z, "goal": g})` sets both; what is left out is drawn, and `"goal": None` means that nothing
ends the episode. With a goal every step costs 1 until it is reached; without one there is no reward. `info` holds the
exact "state", the "goal" (NaN where there is none) and "success".
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from jepatlas.core.errors import InputError, check_argument, check_count, did_you_mean
from jepatlas.worlds.action_world import ActionWorld

__all__ = ["ActionEnv"]

OPTIONS = ("state", "goal")


class ActionEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One episode at a time of a world; observations are its pixels, or numbers where it has none."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (gymnasium's own declaration)

    def __init__(self, world: ActionWorld, render_mode: str | None = None) -> None:
        self.world = world
        self.render_mode = render_mode
        modes = self.metadata["render_modes"] if hasattr(world, "render") else []
        self.metadata = self.metadata | {"render_modes": modes}
        check_argument(
            "render_mode", render_mode, render_mode in (None, *modes), f"one of {[None, *modes]} for '{world.kind}'"
        )
        # `gymnasium.make` takes this, so a copy can be made by tools that know no registry but gymnasium's
        self.spec = EnvSpec(
            f"jepatlas/{world.kind}-v0", entry_point="jepatlas.worlds.environment:ActionEnv", kwargs={"world": world}
        )
        self.action_space = Box(-1.0, 1.0, (_width("action_dim", world.action_dim),), np.float32)
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
                raise InputError(f"reset: there is no option '{key}'. {did_you_mean(str(key), OPTIONS)}")
        given = options.get("state")
        aimless = options.get("goal", self) is None
        draw = self.world.states if aimless else getattr(self.world, "starts", self.world.states)
        state = draw(1, self.np_random)[0] if given is None else self._admitted("state", given)
        self.state = state
        if "goal" not in options:
            self.goal = self.world.goals(state[None], self.np_random)[0]
        else:
            self.goal = None if options["goal"] is None else self._admitted("goal", options["goal"])
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = np.asarray(action, dtype=np.float64)
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            raise InputError(f"The action is {action}, but it must be {self.world.action_dim} finite numbers.")
        self.state = self.world.step(self._now()[None], np.clip(action, -1.0, 1.0)[None])[0]
        info = self._info()
        return self._observation(), 0.0 if self.goal is None else -1.0, info["success"], False, info

    def render(self) -> np.ndarray | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            return None
        return self.world.render(self._now()[None])[0]  # pyright: ignore[reportAttributeAccessIssue]

    def close(self) -> None:
        """Give back what the world draws with, where it holds anything; its next picture opens that again."""
        if (close := getattr(self.world, "close", None)) is not None:
            close()

    def _now(self) -> np.ndarray:
        if self.state is None:
            raise InputError("The environment has no state yet. Call reset() before step() and render().")
        return self.state

    def _observation(self) -> np.ndarray:
        return self.world.observe(self._now()[None])[0]

    def _info(self) -> dict[str, Any]:
        state, goal = self._now(), self.goal
        success = goal is not None and bool(self.world.reached(state[None], goal[None])[0])
        shown = np.full_like(state, np.nan) if goal is None else goal.copy()
        return {"state": state.copy(), "goal": shown, "success": success}

    def _admitted(self, name: str, given: Any) -> np.ndarray:
        place, dim = np.asarray(given, dtype=np.float64), self.world.state_dim
        if place.shape != (dim,) or not np.isfinite(place).all() or not self.world.admits(place[None])[0]:
            raise InputError(
                f"reset: the {name} {place.tolist()} cannot be taken in the world '{self.world.kind}'. "
                f"Give {dim} finite numbers that are inside of it and not in a wall; world.states draws such."
            )
        return place


def _width(name: str, given: int) -> int:
    check_count(name, given)
    return given


def _observation_space(world: ActionWorld) -> Box:
    """Read off one observation: pixels lie in 0..255, numbers anywhere."""
    rng = np.random.default_rng(0)
    states = world.states(1, rng)
    dim = _width("state_dim", world.state_dim)
    if states.shape != (1, dim) or not np.isfinite(states).all():
        raise InputError(f"The world '{world.kind}' gives states {states}, but one row of {dim} finite numbers is due.")
    seen = world.observe(states)[0]
    if seen.dtype == np.uint8:
        return Box(0, 255, seen.shape, np.uint8)
    if seen.dtype != np.float64 or not np.isfinite(seen).all():
        raise InputError(
            f"The world '{world.kind}' is observed as {seen.dtype} with values {seen.ravel()[:3]}..., "
            "but observations are pixels in uint8 or finite numbers in float64."
        )
    return Box(-np.inf, np.inf, seen.shape, np.float64)
