"""Batches of steps x → x' with costs and goals, for learning energies.

Steps are sampled uniformly from the experience. Goals are sampled uniformly from all observed states or, with
probability `future`, from later states of the same episode.

Learning pushes apart all states that no step connects, including a state and its unobserved neighbourhood. `jitter`
counteracts this for energies that are evaluated slightly off the data, such as on mapped latents: both ends of a step
are shifted by the same random vector, which is shorter than a typical step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from jepatlas.core.errors import InputError
from jepatlas.core.records import Experience, Steps
from jepatlas.core.seeding import torch_generator
from jepatlas.data.batches import check_batch_split, process_rows
from jepatlas.data.experience import check_experience, episode_ends

__all__ = ["StepStream"]


@dataclass(frozen=True)
class StepStream:
    """Random batches of steps, a function of (seed, step).

    Each process draws the joint batch and returns its rows, so the joint batch does not depend on the number of
    processes.
    """

    experience: Experience
    batch_size: int  # over all processes
    seed: int
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1
    future: float = 0.0
    jitter: float = 0.0  # largest shift, in units of the median step length

    def __post_init__(self) -> None:
        check_experience(self.experience)
        check_batch_split(self.batch_size, self.rank, self.world_size)
        if not 0 <= self.future <= 1:
            raise InputError(f"future must be a probability, but is {self.future}.")
        if not 0 <= self.jitter < np.inf:
            raise InputError(f"jitter must be finite and not negative, but is {self.jitter}.")

    def __call__(self, step: int) -> Steps:
        generator = torch_generator(self.seed, "steps", step, self.device)
        data = self._data
        row = self._random_integers(len(data.x), generator)
        goal = data.goals[self._random_integers(len(data.goals), generator)]
        later = data.x_next[self._later_rows(row, generator)]
        chosen = torch.rand(self.batch_size, generator=generator, device=self.device) < self.future
        goal = torch.where(chosen[:, None], later, goal)
        x, x_next = data.x[row], data.x_next[row]
        if self.jitter:
            step_shift, goal_shift = self._shifts(generator)
            x, x_next, goal = x + step_shift, x_next + step_shift, goal + goal_shift
        mine = process_rows(self.batch_size, self.rank, self.world_size)
        return Steps(x[mine], x_next[mine], data.cost[row[mine]], goal[mine])

    def _shifts(self, generator: Generator) -> Tensor:
        """Uniform samples from a ball, for steps and for goals: (2, b, p)."""
        size = (2, self.batch_size, self._data.x.shape[1])
        direction = torch.randn(size, generator=generator, device=self.device)
        radius = torch.rand(size[:2], generator=generator, device=self.device) ** (1 / size[2])
        return self.jitter * self._data.step_length * (radius / direction.norm(dim=-1))[..., None] * direction

    def _random_integers(self, bound: int, generator: Generator) -> Tensor:
        return torch.randint(bound, (self.batch_size,), generator=generator, device=self.device)

    def _later_rows(self, row: Tensor, generator: Generator) -> Tensor:
        """A random row from each given one to the end of its episode; its x_next lies in the future."""
        remaining = self._data.end[row] - row + 1
        part = torch.rand(self.batch_size, generator=generator, device=self.device, dtype=torch.float64)
        return row + (part * remaining).long()

    @cached_property
    def _data(self) -> _DeviceData:
        given = self.experience
        ends = episode_ends(given.episode)
        # Every observed state once: the starts of all steps and the last state of each episode.
        goals = np.concatenate([given.x, given.x_next[np.unique(ends)]])
        return _DeviceData(
            x=torch.as_tensor(given.x, dtype=torch.float32, device=self.device),
            x_next=torch.as_tensor(given.x_next, dtype=torch.float32, device=self.device),
            cost=torch.as_tensor(given.cost, dtype=torch.float32, device=self.device),
            goals=torch.as_tensor(goals, dtype=torch.float32, device=self.device),
            end=torch.as_tensor(ends, device=self.device),
            step_length=_median_step_length(given),
        )


@dataclass(frozen=True)
class _DeviceData:
    """The experience as tensors on the device of the stream."""

    x: Tensor  # (t, p)
    x_next: Tensor  # (t, p)
    cost: Tensor  # (t,)
    goals: Tensor  # (t + episodes, p)
    end: Tensor  # (t,) last row of the episode of each row
    step_length: float


def _median_step_length(experience: Experience) -> float:
    """Median length of the steps that move; 0 if none does."""
    lengths = np.linalg.norm(experience.x_next - experience.x, axis=1)
    return float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
