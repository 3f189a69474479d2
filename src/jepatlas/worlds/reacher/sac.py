"""Trajectories of a policy learned by soft actor-critic ("Soft Actor-Critic: Off-Policy Maximum Entropy Deep
Reinforcement Learning with a Stochastic Actor"): the arm reaches for targets by torques.

Training happens once; the policy's weights are kept in the user's cache folder, and playing them needs no package but
MuJoCo. The actions played are the policy's means, tanh(μ(x)).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from jepatlas.core.errors import check_argument, check_count, require
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.reacher.kinematics import WRIST_LIMIT, draw_targets, wrap
from jepatlas.worlds.reacher.motion import check_trajectory
from jepatlas.worlds.reacher.policy_cache import policy_path, read_policy, write_policy
from jepatlas.worlds.reacher.scripted import LARGEST_ARC
from jepatlas.worlds.reacher.torque import TorqueArms
from jepatlas.worlds.reacher.world import Reacher
from jepatlas.worlds.turns import alone

__all__ = ["SACMotion", "act"]


@dataclass(frozen=True)
class SACMotion:
    """One target after another, as `ScriptedMotion`, but by what was learned and with the arm's inertia."""

    kind: ClassVar[str] = "sac"

    training_steps: int = 20_000
    """Steps of the environment to learn from, 25 to a simulated second."""
    width: int = 128
    """Units in either hidden layer of actor and critic."""
    training_seed: int = 0
    """Seed of the training."""
    steps_per_target: int = 25
    """After so many steps there is a new target, in training and after."""
    arc: float = 1.5
    """Targets lie in directions up to so many radians to either side; at most 1.7."""

    def __post_init__(self) -> None:
        check_count("training_steps", self.training_steps, minimum=20)
        check_count("width", self.width)
        check_count("steps_per_target", self.steps_per_target)
        check_argument("arc", self.arc, 0 < self.arc <= LARGEST_ARC, f"above 0 and at most {LARGEST_ARC}")

    @property
    def path(self) -> Path:
        """Where the policy is kept; every field of the config is in its name."""
        return policy_path(self)

    def policy(self, console: Console | None = None) -> dict[str, Tensor]:
        """The actor's weights: from the cache, or trained now and put there."""
        if not self.path.exists():
            require("stable_baselines3", "rl", "Training a policy by soft actor-critic")
            from jepatlas.worlds.reacher.sac_training import train  # noqa: PLC0415  (imports the extra)

            with alone(self.path):
                if not self.path.exists():  # another process may have trained it meanwhile
                    write_policy(self, train(self, console or Console(stderr=True)))
        return read_policy(self)

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """Under torques, so that `world` does not bound the turns; angles are given as its states are."""
        del world
        check_trajectory(episodes, length)
        rng = numpy_generator(seed, "reacher-sac")
        weights, arms = self.policy(), TorqueArms(episodes)
        arms.begin(rng)
        angles = np.empty((episodes, length, 2))
        for step in range(length):
            if step % self.steps_per_target == 0:
                arms.targets = draw_targets(episodes, self.arc, rng)
            angles[:, step] = arms.angles
            arms.step(act(weights, arms.observe()))
        # MuJoCo's limits give way a little when a link is thrown against them; states of the world do not
        return np.stack([wrap(angles[..., 0]), np.clip(angles[..., 1], -WRIST_LIMIT, WRIST_LIMIT)], -1)


def act(weights: dict[str, Tensor], seen: np.ndarray) -> np.ndarray:  # (b, 10) → (b, 2)
    """The mean action of the actor: two hidden layers, then tanh."""
    x = torch.from_numpy(seen)
    for layer in ("latent_pi.0", "latent_pi.2"):
        x = torch.relu(torch.nn.functional.linear(x, weights[f"{layer}.weight"], weights[f"{layer}.bias"]))
    return torch.tanh(torch.nn.functional.linear(x, weights["mu.weight"], weights["mu.bias"])).numpy()
