"""Trials over worlds whose energies are known: each world, at each seed, at the size of the scale."""

from __future__ import annotations

from collections.abc import Iterable

from jepatlas.experiments.energy.exact_worlds import Size
from jepatlas.experiments.engine.experiment import Run, Trial

__all__ = ["trials_over"]


def trials_over(key: str, names: Iterable[str], run: Run, sized: tuple[Size, int], seed: int) -> list[Trial]:
    """`key` is what the names are called; `sized` are the size and how many seeds there are from the first on."""
    size, seeds = sized
    return [
        Trial({key: name, "seed": s}, run, {key: name, "size": vars(size), "seed": s})
        for name in names
        for s in range(seed, seed + seeds)
    ]
