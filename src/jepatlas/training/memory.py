"""What a training step frees is kept for the next one, where the C library can be told to.

A step asks for the same large tensors as the one before. Left to itself, glibc gives memory back to the system as soon
as the top of its heap is free, and every step then pays for fresh pages: a tenth to a fifth of the CPU time of a small
vision transformer (`make bench`, vision). The largest amount of memory in use stays the same.
"""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_freed_memory"]

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of parameters in malloc.h
MOST = 2**31 - 1  # bytes at the top of the heap that are given back only when there are more
LARGE = 2**30  # a tensor below that comes from the heap, which keeps it, and not from a mapping of its own


def keep_freed_memory() -> bool:
    """For the rest of this process. Whether the C library can be told so: glibc can, others are left as they are."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # First: where only the other were taken, every large tensor would be mapped anew. Older ones take 32 MB at most.
    large = mallopt(MMAP_THRESHOLD, LARGE) or mallopt(MMAP_THRESHOLD, 2**25)
    return bool(large and mallopt(TRIM_THRESHOLD, MOST))
