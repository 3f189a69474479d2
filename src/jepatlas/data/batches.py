"""Rows of a batch for each process, and prefetching of batches by threads."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError

__all__ = ["Prefetched", "check_batch_split", "process_rows"]


def check_batch_split(batch_size: int, rank: int, world_size: int) -> None:
    """Raise InputError unless the joint batch divides evenly among the processes and `rank` is one of them."""
    if batch_size < 1 or batch_size % world_size:
        raise InputError(
            f"batch_size is {batch_size}, but it must be a positive multiple of the {world_size} processes. It counts "
            "the rows of all processes together."
        )
    if not 0 <= rank < world_size:
        raise InputError(f"rank is {rank}, but it must be in 0 … world_size − 1 = {world_size - 1}.")


def process_rows(batch_size: int, rank: int, world_size: int) -> slice:
    """Rows of the joint batch that belong to process `rank`.

    >>> [process_rows(6, rank, 2) for rank in range(2)]
    [slice(0, 3, None), slice(3, 6, None)]
    """
    share = batch_size // world_size
    return slice(rank * share, (rank + 1) * share)


class Prefetched:
    """Batches computed ahead of time by threads: those of the next `ahead` steps while the current one is used.

    A batch is a function of its step, so prefetching does not change it. Use several `threads` only for batches that
    are thread-safe and release the GIL.
    """

    def __init__(self, batches: Batches, ahead: int = 2, threads: int = 1) -> None:
        if ahead < 1 or threads < 1:
            raise InputError(f"ahead and threads must be at least 1, but are {ahead} and {threads}.")
        self.batches, self.ahead, self.threads = batches, ahead, threads
        self._start()

    def __call__(self, step: int) -> Any:
        called = time.perf_counter()
        if self._first_call is None:
            self._first_call = called
        wanted = range(step, step + self.ahead + 1)
        for stale in [other for other in self._futures if other not in wanted]:
            self._futures.pop(stale).cancel()
        for each in wanted:
            if each not in self._futures:
                self._futures[each] = self._pool.submit(self.batches, each)
        batch = self._futures.pop(step).result()
        self._waited += time.perf_counter() - called
        return batch

    @property
    def waiting(self) -> float:
        """Share of the time since the first call that was spent waiting for batches."""
        if self._first_call is None:
            return 0.0
        return self._waited / max(1e-9, time.perf_counter() - self._first_call)

    def __getstate__(self) -> dict[str, Any]:
        return {"batches": self.batches, "ahead": self.ahead, "threads": self.threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads)
        self._futures: dict[int, Future[Any]] = {}
        self._first_call: float | None = None
        self._waited = 0.0
