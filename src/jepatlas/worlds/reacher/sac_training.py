"""Training the policy of `SACMotion` with stable-baselines3, on states instead of pixels.

The reward is −‖tip − target‖ / reach − 0.02 ‖u‖². Targets change every `steps_per_target` steps; an episode has five of
them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor

from jepatlas.core.seeding import derive, forked_rng
from jepatlas.worlds.reacher.kinematics import draw_targets
from jepatlas.worlds.reacher.sac import OBSERVED, SACMotion, TorqueArms

__all__ = ["TorqueEnv", "train"]

TARGETS_PER_EPISODE = 5


class TorqueEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One arm driven by torques, with a sequence of targets."""

    def __init__(self, steps_per_target: int, arc: float) -> None:
        self.steps_per_target, self.arc = steps_per_target, arc
        self.arms, self.steps = TorqueArms(1), 0
        self.observation_space = Box(-np.inf, np.inf, (OBSERVED,), np.float32)
        self.action_space = Box(-1.0, 1.0, (2,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.steps = 0
        self.arms.reset(self.np_random)
        self.arms.targets = draw_targets(1, self.arc, self.np_random)
        return self.arms.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.arms.step(action[None])
        reward = -float(self.arms.distances[0]) - 0.02 * float(np.square(action).sum())
        self.steps += 1
        if self.steps % self.steps_per_target == 0:
            self.arms.targets = draw_targets(1, self.arc, self.np_random)
        truncated = self.steps == TARGETS_PER_EPISODE * self.steps_per_target
        return self.arms.observe()[0], reward, False, truncated, {}


def train(motion: SACMotion, console: Console) -> dict[str, Tensor]:
    """The actor's weights after `motion.training_steps` steps."""
    steps, seed = motion.training_steps, derive(motion.training_seed, "reacher-sac-training") % 2**32
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console.print(
        f"Training the reacher policy (once); it will be cached as {motion.path}", soft_wrap=True, highlight=False
    )
    with _preserved_global_rng(), Progress(*columns, console=console) as progress:
        model = SAC(
            "MlpPolicy",
            TorqueEnv(motion.steps_per_target, motion.arc),
            learning_rate=1e-3,
            gamma=0.95,
            learning_starts=min(1_000, steps // 4),
            buffer_size=steps,
            device="cpu",
            seed=seed,
            policy_kwargs={"net_arch": [motion.width, motion.width]},
        )
        model.learn(steps, callback=_ProgressBar(progress, steps))
    return dict(model.policy.actor.state_dict())


class _ProgressBar(BaseCallback):
    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.progress, self.task = progress, progress.add_task("soft actor-critic", total=steps)

    def _on_step(self) -> bool:
        self.progress.update(self.task, completed=self.num_timesteps)
        return True


@contextmanager
def _preserved_global_rng() -> Iterator[None]:
    """Restore the global random generators afterwards: stable-baselines3 seeds and uses them."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with forked_rng(0, "reacher-sac"):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
