"""One module over several processes: torch's own data parallelism, and nothing of ours on top."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.distributed import mean_over_processes, world_size

__all__ = ["averaged", "of_all_processes", "parallel", "unsynchronised", "wait_for_all"]

T = TypeVar("T")


def parallel(objective: nn.Module, how: str) -> nn.Module:
    """Whole copies ("ddp") or sharded weights ("fsdp"); the module itself where there is one process."""
    if world_size() == 1:
        return objective
    if how == "ddp":
        return DistributedDataParallel(objective)
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # noqa: PLC0415  (a second to load)

    fully_shard(objective)
    register_fsdp_forward_method(objective, "encode")
    return objective


def unsynchronised(module: nn.Module) -> AbstractContextManager[Any]:
    """For all micro-batches but the last: gradients are exchanged once a step."""
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def averaged(terms: dict[str, Tensor]) -> dict[str, float]:
    """Loss terms of the joint batch, the same on every process; a NaN anywhere is a NaN everywhere."""
    values = mean_over_processes(torch.stack([term.float() for term in terms.values()]))
    return dict(zip(terms, values.tolist(), strict=True))


def of_all_processes(value: T) -> list[T]:
    """What each process has, by rank: so that all of them can refuse what one has found."""
    values = [value] * world_size()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def wait_for_all() -> None:
    """So that what one process has written is there for the others."""
    if world_size() > 1:
        dist.barrier()
