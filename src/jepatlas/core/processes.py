"""CPU threads of BLAS and torch, and worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from jepatlas.core.errors import InputError
from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
else:
    torch = lazy_import("torch")  # alignments need BLAS only

__all__ = ["exit_with_parent", "limited_threads", "torch_threads"]


@contextmanager
def limited_threads(count: int = 1) -> Iterator[None]:
    """Set the number of CPU threads of BLAS and torch within the block, at most as many as OMP_NUM_THREADS allows.

    The option --threads of the command line, or JEPATLAS_THREADS, replaces `count`.

    Use it around statistics on matrices of up to about a thousand columns. OpenBLAS threads wait actively: while other
    processes keep the cores busy, a symmetric eigenproblem of 384 columns on two threads cost 75 times the CPU time of
    one thread, and a product of 20,000 × 384 rows 7 times.

    >>> import torch
    >>> with limited_threads():
    ...     torch.get_num_threads()
    1
    """
    if count < 1:
        raise InputError(f"The number of threads must be at least 1, but is {count}.")
    chosen = os.environ.get("JEPATLAS_THREADS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        count = int(chosen)
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed.isdecimal() and int(allowed) > 0:
        count = min(count, int(allowed))
    with threadpool_limits(count), torch_threads(count) if "torch" in sys.modules else nullcontext():
        yield


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set the number of CPU threads of torch within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def exit_with_parent() -> None:
    """Exit this worker process when its parent process ends. For the initializer of a process pool."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait_and_exit() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_and_exit, daemon=True).start()
