"""CPU threads of torch, and worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["exit_with_parent", "torch_threads"]


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
