"""What a step of training costs in floating-point operations: counted by torch on a step that is really taken.

Multiplications and additions count as two; what is not a matrix product or a convolution (normalisations, moving
averages, augmentation) is not counted, as is usual. So costs of different objectives can be compared, whatever
the machine.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from jepatlas.base.contracts import Batches

__all__ = ["step_flops"]


def step_flops(objective: Any, batches: Batches, accumulate: int = 1) -> int:
    """Operations of the forward and backward pass of one optimiser step; gradients and statistics stay as they are."""
    before = {name: value.clone() for name, value in objective.named_buffers()}
    grads = [p.grad for p in objective.parameters()]
    with torch.random.fork_rng(), FlopCounterMode(display=False) as counter:
        objective(batches(0), 0).total.backward()
    for parameter, grad in zip(objective.parameters(), grads, strict=True):
        parameter.grad = grad
    for name, value in objective.named_buffers():
        value.copy_(before[name])
    return accumulate * counter.get_total_flops()
