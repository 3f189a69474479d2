"""The part of a joint batch that each process takes, so that W processes together see exactly what one would."""

from __future__ import annotations

from jepatlas.core.errors import InputError

__all__ = ["check_share", "own_rows"]


def check_share(batch_size: int, rank: int, world_size: int) -> None:
    """Refuse a batch that cannot be shared out, and a process that is none of them."""
    if batch_size < 1 or batch_size % world_size:
        raise InputError(
            f"batch_size is {batch_size}, but it must be a positive multiple of the {world_size} processes: it counts "
            "the rows of all of them together."
        )
    if not 0 <= rank < world_size:
        raise InputError(f"rank is {rank}, but it must be from 0 to world_size − 1 = {world_size - 1}.")


def own_rows(batch_size: int, rank: int, world_size: int) -> slice:
    """Which rows of the joint batch are this process's.

    >>> [own_rows(6, rank, 2) for rank in range(2)]
    [slice(0, 3, None), slice(3, 6, None)]
    """
    share = batch_size // world_size
    return slice(rank * share, (rank + 1) * share)
