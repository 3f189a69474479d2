"""Batch statistics over all processes, with the gradient of one process on the joint batch.

Convention: the loss of the joint batch is the mean of the processes' losses, L = (1/W) Σ_r L_r, and
`DistributedDataParallel` averages parameter gradients. So the local backward pass must deliver
W · ∂L/∂(local value): that is the mean of the incoming gradients for a mean, their sum for a gather.
Without a process group both functions return their argument.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["gather_rows", "is_main_process", "mean_over_processes", "process_group", "rank", "world_size"]


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world_size() > 1 else 0


def is_main_process() -> bool:
    """Whether this process speaks for all of them, also before and after there is a process group."""
    return os.environ.get("RANK", "0") == "0"


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of `value` over the processes, differentiable."""
    return value if world_size() == 1 else cast(Tensor, _Sum.apply(value)) / world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of all processes, in rank order, differentiable: (b, d) → (W·b, d)."""
    return rows if world_size() == 1 else cast(Tensor, _Gather.apply(rows))


class _Sum(torch.autograd.Function):
    """The sum of a tensor over the processes; by the convention above it is its own adjoint."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.contiguous().clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _Sum.apply(grads[0])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        rows = rows.contiguous()
        parts = [torch.empty_like(rows) for _ in range(world_size())]
        dist.all_gather(parts, rows)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return cast(Tensor, _Sum.apply(grads[0])).chunk(world_size())[rank()]


@contextmanager
def process_group(device: str = "cpu") -> Iterator[None]:
    """Join the group that `torchrun` has prepared, if any, and leave it at the end.

    Whoever trains in it must hold no data-parallel module when it ends: one that outlives the group keeps its threads,
    and the process aborts at exit now and then.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield
    finally:
        gc.collect()  # modules refer to themselves
        dist.destroy_process_group()
