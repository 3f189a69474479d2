"""Importable environments for collection tests, some of which fail once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

__all__ = ["Forgetful", "Unbounded", "Walk", "interrupted_pendulum", "killed_pendulum", "pendulum", "rooms"]


class Walk(gymnasium.Env):
    """A number moved by actions; terminates outside ±2. Every rendered pixel equals the step number."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 1}  # pyright: ignore

    def __init__(self, render_mode: str | None = None, choices: bool = False):
        self.render_mode = render_mode
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float64)
        self.action_space = Discrete(3, start=-1) if choices else Box(-1, 1, (1,), np.float32)
        self.frame = np.zeros((4, 6, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.step_number = 0
        self.place = (options or {}).get("from", self.np_random.uniform(-1, 1))
        return np.array([self.place]), self.info()

    def step(self, action: Any) -> Any:
        self.step_number += 1
        self.place += float(np.ravel(action)[0])
        return np.array([self.place]), -1.0, abs(self.place) > 2, False, self.info()

    def info(self) -> dict[str, Any]:
        return {"state": np.array([self.place, 7.0])}

    def render(self) -> Any:
        self.frame[:] = self.step_number  # the same array again
        return self.frame


class Unbounded(Walk):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = Box(-np.inf, np.inf, (1,), np.float32)


class Forgetful(Walk):
    """Reports a state after `step`, but not after `reset`."""

    def reset(self, **given: Any) -> Any:
        return super().reset(**given)[0], {}


class Harmed(gymnasium.Wrapper):
    """Fails at its third reset, once among all processes that share a marker file."""

    def __init__(self, mark: str, kill: bool):
        super().__init__(pendulum())
        self.mark, self.kill, self.resets = Path(mark), kill, 0

    def reset(self, **given: Any) -> Any:
        self.resets += 1
        if self.resets == 3 and not self.mark.exists():
            self.mark.touch()
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise KeyboardInterrupt
        return self.env.reset(**given)


def pendulum() -> gymnasium.Env:
    return gymnasium.make("Pendulum-v1")


def killed_pendulum(mark: str) -> gymnasium.Env:
    return Harmed(mark, kill=True)


def interrupted_pendulum(mark: str) -> gymnasium.Env:
    return Harmed(mark, kill=False)


def rooms() -> gymnasium.Env:
    from jepatlas.worlds.rooms import Rooms

    return Rooms().make(render_mode="rgb_array")
