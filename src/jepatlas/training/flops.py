"""Floating-point operations of a training step, counted by torch.

A product of m × k and k × n matrices counts 2 m n k, including those of attention (Q Kᵀ, A V). Operations other than
matrix products and convolutions (normalisation, softmax, moving averages, augmentation) are not counted, as is usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, cast

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from jepatlas.core.contracts import Batches, Objective

__all__ = ["counted_flops", "step_flops"]


@contextmanager
def counted_flops() -> Iterator[FlopCounterMode]:
    """Count the operations in the block; read them with `get_total_flops()`.

    Attention runs as plain matrix products in the block, because torch counts fused CPU kernels as zero and fused GPU
    kernels with the products that they recompute in the backward pass. Plain products store Q Kᵀ in memory.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        yield counter


def step_flops(objective: Objective, batches: Batches, accumulate: int = 1) -> int:
    """Operations of the forward and backward pass of one optimiser step. The objective is not changed."""
    batch = batches(0)
    module: Any = deepcopy(cast(nn.Module, objective)).to(batch.x.device)
    with torch.random.fork_rng(), counted_flops() as counter:
        module(batch, 0).total.backward()
    return accumulate * counter.get_total_flops()
