"""Process settings of a training run: graceful interruption, and allocator settings of glibc."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from types import FrameType
from typing import Self

import torch
import torch.distributed as dist

from jepatlas.core.distributed import world_size

__all__ = ["Interruption", "keep_freed_memory"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Parameter numbers in malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
TRIM_BYTES = 2**31 - 1  # never return memory at the top of the heap
MMAP_BYTES = 2**30  # allocate smaller tensors from the heap, not by mmap
OLD_GLIBC_MMAP_BYTES = 2**25


class Interruption:
    """Records Ctrl-C and SIGTERM within the block, to be handled between two steps. A second Ctrl-C interrupts."""

    def __init__(self) -> None:
        self.noticed = False

    def __enter__(self) -> Self:
        self.active = threading.current_thread() is threading.main_thread()
        if self.active:
            self.previous = {number: signal.signal(number, self._notice) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        if self.active:
            for number, handler in self.previous.items():
                signal.signal(number, handler)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        if self.noticed and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.noticed = True

    def requested(self, device: torch.device) -> bool:
        """Whether any process was asked to stop, so that all stop after the same step."""
        if world_size() == 1:
            return self.noticed
        flag = torch.tensor(float(self.noticed), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)


def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for the rest of this process; return whether it accepted the settings.

    Every step allocates the same large tensors. By default glibc returns the top of its heap to the system, and each
    step then pays for fresh pages: 10 to 20% of the CPU time of a small vision transformer (`make bench`, vision). Peak
    memory does not change.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Set the mmap threshold first: with the trim threshold alone, every large tensor would be mapped anew.
    accepted = mallopt(M_MMAP_THRESHOLD, MMAP_BYTES) or mallopt(M_MMAP_THRESHOLD, OLD_GLIBC_MMAP_BYTES)
    return bool(accepted and mallopt(M_TRIM_THRESHOLD, TRIM_BYTES))
