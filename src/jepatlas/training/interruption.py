"""Ctrl-C and termination requests are noted, and acted on between two steps. A second Ctrl-C is not waited for."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self

import torch
import torch.distributed as dist

from jepatlas.core.distributed import world_size

__all__ = ["Interruption"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    def __init__(self) -> None:
        self.noticed = False

    def __enter__(self) -> Self:
        self.handled = threading.current_thread() is threading.main_thread()
        if self.handled:
            self.before = {number: signal.signal(number, self._notice) for number in SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        if self.handled:
            for number, handler in self.before.items():
                signal.signal(number, handler)

    def _notice(self, number: int, frame: FrameType | None) -> None:
        if self.noticed and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.noticed = True

    def requested(self, device: torch.device) -> bool:
        """Whether any process was asked to stop: all must stop after the same step."""
        if world_size() == 1:
            return self.noticed
        flag = torch.tensor(float(self.noticed), device=device)
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag)
