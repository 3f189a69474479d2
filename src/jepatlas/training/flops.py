"""What a step of training costs in floating-point operations: counted by torch on a step that is really taken.

A product of m × k and k × n numbers counts 2 m n k, also those inside attention (Q Kᵀ, A V); what is not a matrix
product or a convolution (normalisations, softmax, moving averages, augmentation) is not counted, as is usual. So costs
of different objectives can be compared, whatever the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from jepatlas.core.contracts import Batches

__all__ = ["counted_flops", "step_flops"]


@contextmanager
def counted_flops() -> Iterator[FlopCounterMode]:
    """Count what is computed inside: `get_total_flops()` of what this gives.

    Attention is computed as plain products meanwhile. Of fused kernels torch counts those of a CPU as nothing, and
    those of a GPU with the products that they repeat backwards. (Plain products hold all of Q Kᵀ in memory.)
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        yield counter


def step_flops(objective: Any, batches: Batches, accumulate: int = 1) -> int:
    """Operations of the forward and backward pass of one optimiser step; the objective stays as it is."""
    batch = batches(0)
    copied = deepcopy(objective).to(batch.x.device)
    with torch.random.fork_rng(), counted_flops() as counter:
        copied(batch, 0).total.backward()
    return accumulate * counter.get_total_flops()
