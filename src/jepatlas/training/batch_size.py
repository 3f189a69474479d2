"""Batches that do not fit the settings or the statistics are refused before the first step, on all processes alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from jepatlas.core.arrays import check_latents
from jepatlas.core.contracts import Objective
from jepatlas.core.errors import InputError
from jepatlas.training.config import TrainingConfig
from jepatlas.training.parallel import of_all_processes

__all__ = ["check_batch", "refuse_small_batch"]


def check_batch(objective: Objective, x: Tensor, encode: Callable[[Tensor], Tensor], config: TrainingConfig) -> None:
    """Refuse a (micro-)batch with other rows than `config` says, or fewer than the objective's statistics need."""
    rows = of_all_processes(len(x))
    _refuse_other_rows(rows, config)
    shape = encode(x).shape
    check_latents(shape, len(x))
    refuse_small_batch(objective, sum(rows), shape[1])


def refuse_small_batch(objective: Objective, rows: int, dim: int) -> None:
    """`rows` are those of one micro-batch, over all processes: what batch statistics are taken over."""
    if rows < (least := objective.smallest_batch(dim)):
        raise InputError(
            f"A batch of {rows} is too small: the statistics of {type(objective).__name__} over {dim} latent dimensions"
            f" need at least {least} pairs. Raise batch_size (--batch-size), or lower accumulate."
        )


def _refuse_other_rows(rows: Sequence[int], config: TrainingConfig) -> None:
    """Joint statistics presume that every process has as many rows as the others."""
    parts = len(rows) * config.accumulate
    if any(count * parts != config.batch_size for count in rows):
        found = " or ".join(map(str, sorted(set(rows))))
        raise InputError(
            f"batch_size is {config.batch_size} for one step of {len(rows)} process(es) with {config.accumulate} "
            f"micro-batch(es) each, so every batch should have {config.batch_size / parts:g} rows, but it has {found}. "
            "Set batch_size to what one step takes in all, or deliver batches of that size."
        )
