"""Motions of a policy trained with soft actor-critic: the arm reaches for targets by torques.

The policy is trained once; its weights are cached in the user's cache folder, one safetensors file per setting.
Trajectories need MuJoCo but not stable-baselines3. They use the policy's mean actions, tanh(μ(x)).

Reference: "Soft Actor-Critic: Off-Policy Maximum Entropy Deep Reinforcement Learning with a Stochastic Actor".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jepatlas.core.config import to_plain
from jepatlas.core.errors import InputError, check_argument, check_count, require
from jepatlas.core.files import cache_folder, write_bytes
from jepatlas.core.lazy import lazy_import
from jepatlas.core.locks import writer_lock
from jepatlas.core.sealing import sha256_of_json
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.reacher.arm import Reacher, load_reacher_mujoco, reacher_spec
from jepatlas.worlds.reacher.kinematics import LINKS, WRIST_LIMIT, draw_targets, fingertip, wrap
from jepatlas.worlds.reacher.motions import LARGEST_ARC, check_trajectory

if TYPE_CHECKING:
    import torch
    from rich.console import Console
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["OBSERVED", "SACMotion", "TorqueArms", "mean_actions"]

PROCEDURE = 1  # raise when the training changes, so that policies cached before are not used
OBSERVED = 10
STEPS_PER_ACTION = 2  # of 0.02 s each
REACH = sum(LINKS)
VELOCITY_SCALE = 10.0  # rad/s; scales velocities to the size of the other observations


@dataclass(frozen=True)
class SACMotion:
    """Like `ScriptedMotion` one target after another, but with a learned policy and the arm's inertia."""

    kind: ClassVar[str] = "sac"

    training_steps: int = 20_000
    """Number of training steps, 25 per simulated second."""
    width: int = 128
    """Units in each of the two hidden layers of actor and critic."""
    training_seed: int = 0
    """Seed of the training."""
    steps_per_target: int = 25
    """Number of steps after which the target changes, in training and in trajectories."""
    arc: float = 1.5
    """Largest direction of targets to either side, in radians; at most 1.7."""

    def __post_init__(self) -> None:
        check_count("training_steps", self.training_steps, minimum=20)
        check_count("width", self.width)
        check_count("steps_per_target", self.steps_per_target)
        check_argument("arc", self.arc, 0 < self.arc <= LARGEST_ARC, f"above 0 and at most {LARGEST_ARC}")

    @property
    def path(self) -> Path:
        """The cached policy; the file name depends on every field."""
        key = sha256_of_json({"procedure": PROCEDURE, **to_plain(self)})[:16]
        return cache_folder() / f"reacher-sac-{key}.safetensors"

    def policy(self, console: Console | None = None) -> dict[str, Tensor]:
        """The actor's weights, from the cache; trains and caches them first if necessary."""
        from safetensors import SafetensorError  # noqa: PLC0415  (imports torch)
        from safetensors.torch import load  # noqa: PLC0415

        if not self.path.exists():
            self._train(console)
        try:
            return load(self.path.read_bytes())
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"The cached policy {self.path} could not be read ({error}). Delete the file to train it again."
            ) from error

    def _train(self, console: Console | None) -> None:
        require("stable_baselines3", "rl", "Training a policy by soft actor-critic")
        from rich.console import Console  # noqa: PLC0415
        from safetensors.torch import save  # noqa: PLC0415

        from jepatlas.worlds.reacher.sac_training import train  # noqa: PLC0415  (imports the extra)

        with writer_lock(self.path, wait=True):
            if self.path.exists():  # another process may have trained it in the meantime
                return
            weights = train(self, console or Console(stderr=True))
            tensors = {name: value.detach().contiguous() for name, value in weights.items()}
            write_bytes(self.path, save(tensors, {"settings": json.dumps(to_plain(self))}))

    def trajectory(self, world: Reacher, episodes: int, length: int, seed: int) -> np.ndarray:
        """Joint angles under torques; the world's `max_turn` does not apply."""
        del world
        check_trajectory(episodes, length)
        rng = numpy_generator(seed, "reacher-sac")
        weights, arms = self.policy(), TorqueArms(episodes)
        arms.reset(rng)
        angles = np.empty((episodes, length, 2))
        for step in range(length):
            if step % self.steps_per_target == 0:
                arms.targets = draw_targets(episodes, self.arc, rng)
            angles[:, step] = arms.angles
            arms.step(mean_actions(weights, arms.observe()))
        # MuJoCo's joint limits are soft and yield slightly to a fast link; states of the world respect them.
        return np.stack([wrap(angles[..., 0]), np.clip(angles[..., 1], -WRIST_LIMIT, WRIST_LIMIT)], -1)


def mean_actions(weights: dict[str, Tensor], observations: np.ndarray) -> np.ndarray:  # (b, 10) → (b, 2)
    """The actor's mean action: two hidden layers, then tanh."""
    x = torch.from_numpy(observations)
    for layer in ("latent_pi.0", "latent_pi.2"):
        x = torch.relu(torch.nn.functional.linear(x, weights[f"{layer}.weight"], weights[f"{layer}.bias"]))
    return torch.tanh(torch.nn.functional.linear(x, weights["mu.weight"], weights["mu.bias"])).numpy()


class TorqueArms:
    """Arms with a target each, driven by torques in MuJoCo.

    Observations are the sines and cosines of the joint angles, their velocities, the target, and the vector from the
    fingertip to the target.
    """

    def __init__(self, count: int) -> None:
        self.mujoco = load_reacher_mujoco()
        self.model = reacher_spec().compile()
        self.data = [self.mujoco.MjData(self.model) for _ in range(count)]
        self.targets = np.zeros((count, 2))

    def reset(self, rng: np.random.Generator) -> None:
        """Random postures at rest."""
        for data in self.data:
            self.mujoco.mj_resetData(self.model, data)
            data.qpos[:] = rng.uniform([-np.pi, -WRIST_LIMIT], [np.pi, WRIST_LIMIT])

    @property
    def angles(self) -> np.ndarray:  # (count, 2)
        return np.array([data.qpos for data in self.data])

    @property
    def velocities(self) -> np.ndarray:
        return np.array([data.qvel for data in self.data])

    @property
    def distances(self) -> np.ndarray:
        """Distance of fingertip and target, in units of the arm's length."""
        return np.linalg.norm(self.targets - fingertip(self.angles), axis=1) / REACH

    def observe(self) -> np.ndarray:  # (count, 10) float32
        q = self.angles
        to_target = self.targets - fingertip(q)
        parts = [np.cos(q), np.sin(q), self.velocities / VELOCITY_SCALE, self.targets / REACH, to_target / REACH]
        return np.concatenate(parts, 1).astype(np.float32)

    def step(self, torques: np.ndarray) -> None:  # (count, 2) in [−1, 1]
        for data, torque in zip(self.data, torques, strict=True):
            data.ctrl[:] = torque
            self.mujoco.mj_step(self.model, data, STEPS_PER_ACTION)
