"""The stream of batches of steps: what an energy is learned from.

A batch has steps x → x', each drawn from all that were observed, with its cost; and for each a goal. Goals are drawn
uniformly from all observed states, or with probability `future` from what came later in the same episode. With a
`jitter`, states come with noise: an energy that is to be used on latents that are a little off, as those of another
model through a map are, must not depend on such differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor

from jepatlas.base.errors import InputError
from jepatlas.base.records import Experience, Steps
from jepatlas.base.seeding import torch_generator
from jepatlas.views.experience import check_experience, episode_ends

__all__ = ["StepStream"]


@dataclass(frozen=True)
class StepStream:
    """The steps of each training step, drawn anew from (seed, step).

    Every process draws the joint batch and takes its part, so W processes together see exactly what one would.
    """

    experience: Experience
    batch_size: int  # of all processes together
    seed: int
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1
    future: float = 0.0
    jitter: float = 0.0  # of noise on every state, as a share of each coordinate's standard deviation

    def __post_init__(self) -> None:
        check_experience(self.experience)
        if self.batch_size < 1 or self.batch_size % self.world_size:
            raise InputError(
                f"batch_size is {self.batch_size}, but it must be a positive multiple of the {self.world_size} "
                "processes: it counts the rows of all of them together."
            )
        if not 0 <= self.rank < self.world_size:
            raise InputError(f"rank is {self.rank}, but it must be from 0 to world_size − 1 = {self.world_size - 1}.")
        if not 0 <= self.future <= 1:
            raise InputError(f"future is a probability, but {self.future} was given.")
        if not 0 <= self.jitter < np.inf:
            raise InputError(f"jitter must be finite and not negative, but {self.jitter} was given.")

    def __call__(self, step: int) -> Steps:
        generator = torch_generator(self.seed, "steps", step, self.device)
        data, share = self._data, self.batch_size // self.world_size
        row = self._integers(len(data.x), generator)
        goal = data.goals[self._integers(len(data.goals), generator)]
        later = data.x_next[self._later(row, generator)]
        chosen = torch.rand(self.batch_size, generator=generator, device=self.device) < self.future
        goal = torch.where(chosen[:, None], later, goal)
        mine = slice(self.rank * share, (self.rank + 1) * share)
        states = torch.stack([data.x[row], data.x_next[row], goal])
        if self.jitter:
            noise = torch.randn(states.shape, generator=generator, device=self.device)
            states = states + self.jitter * data.spread * noise
        x, x_next, goal = states[:, mine]
        return Steps(x, x_next, data.cost[row[mine]], goal)

    def _integers(self, bound: int, generator: Generator) -> Tensor:
        return torch.randint(bound, (self.batch_size,), generator=generator, device=self.device)

    def _later(self, row: Tensor, generator: Generator) -> Tensor:
        """A row from each given one to the last of its episode: where it leads lies ahead."""
        left = self._data.end[row] - row + 1
        part = torch.rand(self.batch_size, generator=generator, device=self.device, dtype=torch.float64)
        return row + (part * left).long()

    @cached_property
    def _data(self) -> _Data:
        given, ends = self.experience, episode_ends(self.experience.episode)
        last = np.unique(ends)
        goals = np.concatenate(
            [given.x, given.x_next[last]]
        )  # every state once: where a step began, or an episode ended
        x, x_next, cost, goal = (
            torch.as_tensor(array, dtype=torch.float32, device=self.device)
            for array in (given.x, given.x_next, given.cost, goals)
        )
        return _Data(x, x_next, cost, goal, torch.as_tensor(ends, device=self.device), goal.std(0, correction=0))


@dataclass(frozen=True)
class _Data:
    """The experience on its device."""

    x: Tensor  # (t, p)
    x_next: Tensor  # (t, p)
    cost: Tensor  # (t,)
    goals: Tensor  # (t + episodes, p)
    end: Tensor  # (t,) the last row of each row's episode
    spread: Tensor  # (p,) standard deviations of states
