"""Differentiable batch statistics over all processes of data-parallel training.

The loss of the joint batch is the mean of the processes' losses, L = (1/W) Σ_r L_r, and `DistributedDataParallel`
averages parameter gradients. So the local backward pass must return W · ∂L/∂(local value): the mean of the incoming
gradients for a mean, and their sum for a gather. Without a process group both functions return their argument.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = [
    "gather_rows",
    "gather_values",
    "is_main_process",
    "mean_over_processes",
    "process_group",
    "rank",
    "value_of_main_process",
    "world_size",
]

T = TypeVar("T")


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world_size() > 1 else 0


def is_main_process() -> bool:
    """Whether this is the process of rank 0; also valid before and after a process group exists."""
    return os.environ.get("RANK", "0") == "0"


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of `value` over the processes, differentiable."""
    return value if world_size() == 1 else cast(Tensor, _Sum.apply(value)) / world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of all processes, in rank order, differentiable: (b, d) → (W·b, d)."""
    return rows if world_size() == 1 else cast(Tensor, _Gather.apply(rows))


def gather_values(value: T) -> list[T]:
    """The values of all processes, by rank; any objects, without gradients."""
    values = [value] * world_size()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def value_of_main_process(value: T) -> T:
    """The value that the process of rank 0 has."""
    values = [value]
    if world_size() > 1:
        dist.broadcast_object_list(values, src=0)
    return values[0]


class _Sum(torch.autograd.Function):
    """The sum of a tensor over the processes, which is its own adjoint under the convention above."""

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
    """Join the process group that `torchrun` has prepared, if any, and leave it at the end.

    All data-parallel modules must be deleted within the block. A module that outlives the group keeps its threads, and
    the process may abort at exit.
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
        gc.collect()  # modules contain reference cycles
        dist.destroy_process_group()
