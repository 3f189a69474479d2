"""Data parallelism with torch's DistributedDataParallel or FSDP2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from jepatlas.core.distributed import mean_over_processes, rank, value_of_main_process, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.locks import writer_lock

__all__ = ["average_terms", "gradient_accumulation", "lock_for_all", "parallelise", "wait_for_all"]


def parallelise(objective: nn.Module, how: str) -> nn.Module:
    """Replicate ("ddp") or shard ("fsdp") the objective; with one process, return it unchanged."""
    if world_size() == 1:
        return objective
    if how == "ddp":
        return DistributedDataParallel(objective)
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # noqa: PLC0415  (takes a second)

    fully_shard(objective)
    register_fsdp_forward_method(objective, "encode")
    return objective


def gradient_accumulation(module: nn.Module) -> AbstractContextManager[Any]:
    """Context for all micro-batches but the last: gradients are not synchronised."""
    return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()


def average_terms(terms: dict[str, Tensor]) -> dict[str, float]:
    """Mean loss terms over all processes; a NaN on any process is a NaN on all."""
    values = mean_over_processes(torch.stack([term.float() for term in terms.values()]))
    return dict(zip(terms, values.tolist(), strict=True))


def wait_for_all() -> None:
    """Barrier, so that files written by one process are visible to the others."""
    if world_size() > 1:
        dist.barrier()


@contextmanager
def lock_for_all(folder: Path) -> Iterator[None]:
    """Hold the writer's lock of a folder in the process of rank 0; if it is taken, all processes raise InputError."""
    with ExitStack() as stack:
        problem = ""
        if rank() == 0:
            try:
                stack.enter_context(writer_lock(folder))
            except InputError as error:
                problem = str(error)
        problem = value_of_main_process(problem)
        if problem:
            raise InputError(problem)
        yield
