"""Batch statistics over all processes, with the gradient of one process on the joint batch.

Convention: the loss of the joint batch is the mean of the processes' losses, L = (1/W) Σ_r L_r, and
`DistributedDataParallel` averages parameter gradients. So the local backward pass must deliver
W · ∂L/∂(local value): that is the mean of the incoming gradients for a mean, their sum for a gather.
Without a process group both functions return their argument.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["gather_rows", "mean_over_processes", "process_group", "rank", "world_size"]


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world_size() > 1 else 0


def mean_over_processes(value: Tensor) -> Tensor:
    """The mean of `value` over the processes, differentiable."""
    return value if world_size() == 1 else _Mean.apply(value)  # pyright: ignore[reportReturnType]


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of all processes, in rank order, differentiable: (b, d) → (W·b, d)."""
    return rows if world_size() == 1 else _Gather.apply(rows)  # pyright: ignore[reportReturnType]


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.contiguous().clone()
        dist.all_reduce(total)
        return total / world_size()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return _Mean.forward(ctx, grads[0])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous().clone()
        dist.all_reduce(total)
        return total.chunk(world_size())[rank()]


@contextmanager
def process_group(device: str = "cpu") -> Iterator[None]:
    """Join the group that `torchrun` has prepared, if any, and leave it at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()
