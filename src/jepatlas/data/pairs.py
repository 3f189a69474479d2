"""Pair laws of a world, and streams of batches of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from jepatlas.core.contracts import World
from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import torch_generator
from jepatlas.data.batches import check_batch_split, process_rows

if TYPE_CHECKING:
    import torch
    from torch import Generator, Tensor
else:
    torch = lazy_import("torch")

__all__ = ["AnyPairLaw", "PairStream", "Siblings", "Transitions"]


@dataclass(frozen=True)
class Transitions:
    """A state and its successor: z' ~ p(· | z). The correlation is that of the world, ρ."""

    kind: ClassVar[str] = "transition"

    def draw(self, world: World, count: int, generator: Generator) -> Pairs:
        z = world.states(count, generator)
        z_next = world.transition(z, generator)
        return Pairs(world.observe(z), world.observe(z_next), z, z_next)

    def correlation(self, world: World) -> tuple[float, ...] | None:
        return world.correlation


@dataclass(frozen=True)
class Siblings:
    """Two successors of a hidden anchor: z, z' ~ p(· | a), independent given a.

    This is the pair law of the synthetic runs in "When Does LeJEPA Learn a World Model?". Its correlation is that of
    two steps: ρ² for a Gaussian world; for other worlds it is not a function of ρ alone.
    """

    kind: ClassVar[str] = "siblings"

    def draw(self, world: World, count: int, generator: Generator) -> Pairs:
        anchor = world.states(count, generator)
        z = world.transition(anchor, generator)
        z_next = world.transition(anchor, generator)
        return Pairs(world.observe(z), world.observe(z_next), z, z_next)

    def correlation(self, world: World) -> tuple[float, ...] | None:
        if isinstance(world, _MultiStepWorld):
            # E[E[z|a]²] = E[z E[z''|z]]: each of our laws is reversible, or linear in a with unit variance.
            return world.correlation_after(2)
        if world.gaussian and world.correlation is not None:
            return tuple(rho**2 for rho in world.correlation)
        return None


AnyPairLaw = Transitions | Siblings


@dataclass(frozen=True)
class PairStream:
    """Batches of pairs, a function of (seed, step): fresh pairs, or pairs from a fixed pool of `pool` pairs.

    Each process draws the joint batch and returns its rows, so the joint batch does not depend on the number of
    processes.
    """

    world: World
    pair_law: AnyPairLaw
    batch_size: int  # over all processes
    seed: int
    device: torch.device | str = "cpu"
    rank: int = 0
    world_size: int = 1
    pool: int | None = None

    def __post_init__(self) -> None:
        check_batch_split(self.batch_size, self.rank, self.world_size)
        if self.pool is not None and self.pool < self.batch_size:
            raise InputError(f"pool={self.pool} pairs is smaller than batch_size={self.batch_size}.")

    def __call__(self, step: int) -> Pairs:
        generator = torch_generator(self.seed, "pairs", step, self.device)
        mine = process_rows(self.batch_size, self.rank, self.world_size)
        if self.pool is not None:
            chosen = torch.randperm(self.pool, generator=generator, device=self.device)[: self.batch_size]
            return _take(self._pooled, chosen[mine])
        return _take(self.pair_law.draw(self.world, self.batch_size, generator), mine)

    @cached_property
    def _pooled(self) -> Pairs:
        assert self.pool is not None
        return self.pair_law.draw(self.world, self.pool, torch_generator(self.seed, "pool", device=self.device))


def _take(pairs: Pairs, rows: slice | Tensor) -> Pairs:
    return Pairs(pairs.x[rows], pairs.x_next[rows], pairs.z[rows], pairs.z_next[rows])


@runtime_checkable
class _MultiStepWorld(Protocol):
    """A world whose correlation over several steps is known."""

    def correlation_after(self, steps: int) -> tuple[float, ...] | None: ...
