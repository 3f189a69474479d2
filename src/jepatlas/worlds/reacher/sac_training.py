"""Training the policy of `SACMotion` with stable-baselines3, on an environment of states, not of pixels.

The reward is −‖tip − target‖ / reach − 0.02 ‖u‖². Targets change every `steps_per_target` steps, five to an episode.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
from jepatlas.worlds.reacher.torque import OBSERVED, TorqueArms

if TYPE_CHECKING:
    from jepatlas.worlds.reacher.sac import SACMotion

__all__ = ["TorqueEnv", "train"]

TARGETS_PER_EPISODE = 5


class TorqueEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One arm under torques, and its targets."""

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
        self.arms.begin(self.np_random)
        self.arms.targets = draw_targets(1, self.arc, self.np_random)
        return self.arms.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.arms.step(action[None])
        reward = -float(self.arms.distances[0]) - 0.02 * float(np.square(action).sum())
        self.steps += 1
        if self.steps % self.steps_per_target == 0:
            self.arms.targets = draw_targets(1, self.arc, self.np_random)
        over = self.steps == TARGETS_PER_EPISODE * self.steps_per_target
        return self.arms.observe()[0], reward, False, over, {}


def train(motion: SACMotion, console: Console) -> dict[str, Tensor]:
    """The actor's weights after `motion.training_steps` steps."""
    steps, seed = motion.training_steps, derive(motion.training_seed, "reacher-sac-training") % 2**32
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console.print(
        f"Training a policy for the reacher once; it is kept as {motion.path}", soft_wrap=True, highlight=False
    )
    with _global_generators_kept(), Progress(*columns, console=console) as progress:
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
        model.learn(steps, callback=_Bar(progress, steps))
    return dict(model.policy.actor.state_dict())


class _Bar(BaseCallback):
    def __init__(self, progress: Progress, steps: int) -> None:
        super().__init__()
        self.progress, self.task = progress, progress.add_task("soft actor-critic", total=steps)

    def _on_step(self) -> bool:
        self.progress.update(self.task, completed=self.num_timesteps)
        return True


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    """stable-baselines3 seeds and uses the generators of the whole process; they are as before afterwards."""
    plain, numpy = random.getstate(), np.random.get_state()
    try:
        with forked_rng(0, "reacher-sac"):
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy)
