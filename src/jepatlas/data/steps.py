"""The stream of batches of steps: what an energy is learned from.

A batch has steps x → x', each drawn from all that were observed, with its cost; and for each a goal. Goals are drawn
uniformly from all observed states, or with probability `future` from what came later in the same episode.

Learning pushes apart what no step holds together, and so also a state from its own surroundings, where nothing was
observed. An energy that is to be used there (on latents that come through a map, a little off) is learned with a
`jitter`: steps are moved as they are, both ends alike, by less than they are long.
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
from jepatlas.data.experience import check_experience, episode_ends
from jepatlas.data.shares import check_share, own_rows

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
    jitter: float = 0.0  # how far states are moved at most, in lengths of a typical step

    def __post_init__(self) -> None:
        check_experience(self.experience)
        check_share(self.batch_size, self.rank, self.world_size)
        if not 0 <= self.future <= 1:
            raise InputError(f"future is a probability, but {self.future} was given.")
        if not 0 <= self.jitter < np.inf:
            raise InputError(f"jitter must be finite and not negative, but {self.jitter} was given.")

    def __call__(self, step: int) -> Steps:
        generator = torch_generator(self.seed, "steps", step, self.device)
        data = self._data
        row = self._integers(len(data.x), generator)
        goal = data.goals[self._integers(len(data.goals), generator)]
        later = data.x_next[self._later(row, generator)]
        chosen = torch.rand(self.batch_size, generator=generator, device=self.device) < self.future
        goal = torch.where(chosen[:, None], later, goal)
        mine = own_rows(self.batch_size, self.rank, self.world_size)
        x, x_next = data.x[row], data.x_next[row]
        if self.jitter:
            moves = self._moves(generator)  # one for both ends of a step, which is as long as it was
            x, x_next, goal = x + moves[0], x_next + moves[0], goal + moves[1]
        return Steps(x[mine], x_next[mine], data.cost[row[mine]], goal[mine])

    def _moves(self, generator: Generator) -> Tensor:
        """Uniform in a ball, for steps and for goals: (2, b, p)."""
        size = (2, self.batch_size, self._data.x.shape[1])
        direction = torch.randn(size, generator=generator, device=self.device)
        radius = torch.rand(size[:2], generator=generator, device=self.device) ** (1 / size[2])
        return self.jitter * self._data.stride * (radius / direction.norm(dim=-1))[..., None] * direction

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
        return _Data(x, x_next, cost, goal, torch.as_tensor(ends, device=self.device), _stride(given))


@dataclass(frozen=True)
class _Data:
    """The experience on its device."""

    x: Tensor  # (t, p)
    x_next: Tensor  # (t, p)
    cost: Tensor  # (t,)
    goals: Tensor  # (t + episodes, p)
    end: Tensor  # (t,) the last row of each row's episode
    stride: float  # the length of a typical step that moved


def _stride(experience: Experience) -> float:
    lengths = np.linalg.norm(experience.x_next - experience.x, axis=1)
    return float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else 0.0
