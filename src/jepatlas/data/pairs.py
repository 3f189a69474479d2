"""Pair laws: which two states of a world a learner sees together; and the stream of batches drawn from one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Generator, Tensor

from jepatlas.core.contracts import World
from jepatlas.core.errors import InputError
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.data.shares import check_share, own_rows

__all__ = ["AnyPairLaw", "PairStream", "Siblings", "Transitions"]


@dataclass(frozen=True)
class Transitions:
    """A state and its successor: z' ~ p(· | z). The correlation is the world's, ρ."""

    kind: ClassVar[str] = "transition"

    def draw(self, world: World, count: int, generator: Generator) -> Pairs:
        z = world.states(count, generator)
        z_next = world.transition(z, generator)
        return Pairs(world.observe(z), world.observe(z_next), z, z_next)

    def correlation(self, world: World) -> tuple[float, ...] | None:
        return world.correlation


@dataclass(frozen=True)
class Siblings:
    """Two successors of one anchor that is not shown: z, z' ~ p(· | a), independent given a.

    The synthetic runs of "When Does LeJEPA Learn a World Model?" draw their pairs so. The correlation is that of two
    steps: ρ² for a Gaussian world, and no function of ρ alone for others.
    """

    kind: ClassVar[str] = "siblings"

    def draw(self, world: World, count: int, generator: Generator) -> Pairs:
        anchor = world.states(count, generator)
        z = world.transition(anchor, generator)
        z_next = world.transition(anchor, generator)
        return Pairs(world.observe(z), world.observe(z_next), z, z_next)

    def correlation(self, world: World) -> tuple[float, ...] | None:
        if isinstance(world, _ManySteps):
            # E[E[z|a]²] = E[z E[z''|z]]: each of our laws is reversible, or linear in a with unit variance.
            return world.correlation_after(2)
        if world.gaussian and world.correlation is not None:
            return tuple(rho**2 for rho in world.correlation)
        return None


AnyPairLaw = Transitions | Siblings


@dataclass(frozen=True)
class PairStream:
    """The pairs of each step: drawn anew from (seed, step), or with a `pool` from that many pairs, drawn once.

    Every process draws the joint batch and takes its part, so W processes together see exactly what one would.
    """

    world: World
    pair_law: AnyPairLaw
    batch_size: int  # of all processes together
    seed: int
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1
    pool: int | None = None

    def __post_init__(self) -> None:
        check_share(self.batch_size, self.rank, self.world_size)
        if self.pool is not None and self.pool < self.batch_size:
            raise InputError(f"A pool of {self.pool} pairs is smaller than one batch of {self.batch_size}.")

    def __call__(self, step: int) -> Pairs:
        generator = torch_generator(self.seed, "pairs", step, self.device)
        mine = own_rows(self.batch_size, self.rank, self.world_size)
        if self.pool is not None:
            chosen = torch.randperm(self.pool, generator=generator, device=self.device)[: self.batch_size]
            return _rows(self._pooled, chosen[mine])
        return _rows(self.pair_law.draw(self.world, self.batch_size, generator), mine)

    @cached_property
    def _pooled(self) -> Pairs:
        assert self.pool is not None
        return self.pair_law.draw(self.world, self.pool, torch_generator(self.seed, "pool", device=self.device))


def _rows(pairs: Pairs, rows: slice | Tensor) -> Pairs:
    return Pairs(pairs.x[rows], pairs.x_next[rows], pairs.z[rows], pairs.z_next[rows])


@runtime_checkable
class _ManySteps(Protocol):
    """A world that knows its correlation over several steps, too."""

    def correlation_after(self, steps: int) -> tuple[float, ...] | None: ...
