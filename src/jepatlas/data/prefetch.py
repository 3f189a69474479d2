"""Batches made ahead of time by threads, so that training does not wait for them.

A batch depends on its step alone, so those made ahead are the very ones that would have been made when asked for, in
whatever order they are asked for.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from jepatlas.core.contracts import Batches
from jepatlas.core.errors import InputError

__all__ = ["Prefetched"]


class Prefetched:
    """Any batches, with those of the next `ahead` steps made while the batch of this one is used.

    Several `threads` make several batches at a time: for batches that bear it, and work outside of Python's lock.
    """

    def __init__(self, batches: Batches, ahead: int = 2, threads: int = 1) -> None:
        if ahead < 1 or threads < 1:
            raise InputError(
                f"ahead is {ahead} and threads is {threads}, but at least 1 batch must be made ahead by 1."
            )
        self.batches, self.ahead, self.threads = batches, ahead, threads
        self._begin()

    def __call__(self, step: int) -> Any:
        asked = time.perf_counter()
        self._began = asked if self._began is None else self._began
        wanted = range(step, step + self.ahead + 1)
        for other in [other for other in self._made if other not in wanted]:
            self._made.pop(other).cancel()
        for each in wanted:
            if each not in self._made:
                self._made[each] = self._pool.submit(self.batches, each)
        batch = self._made.pop(step).result()
        self._waited += time.perf_counter() - asked
        return batch

    @property
    def waiting(self) -> float:
        """The share of time, since the first batch was asked for, that went by waiting for batches."""
        if self._began is None:
            return 0.0
        return self._waited / max(1e-9, time.perf_counter() - self._began)

    def __getstate__(self) -> dict[str, Any]:
        return {"batches": self.batches, "ahead": self.ahead, "threads": self.threads}  # threads stay in their process

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def _begin(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads)
        self._made: dict[int, Future[Any]] = {}
        self._began: float | None = None
        self._waited = 0.0
