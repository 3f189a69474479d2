"""Overhead of a monitor, relative to the training steps between two of its records.

Images of 96 × 96 pixels and 16 pairs per step make the steps short, five times shorter per image than at 224 × 224.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.measurement import Comparison, cpu_ms
from jepatlas.core.records import Pairs
from jepatlas.core.seeding import forked_rng
from jepatlas.monitoring import Monitor
from jepatlas.nn import ViTConfig
from jepatlas.objectives import LeJEPA

__all__ = ["run"]

EVERY, PAIRS, SIZE, STATES, TURNS = 500, 16, 96, 8, 3


def run() -> Iterator[Comparison]:
    step = _training_step()
    step()  # warm-up
    for width in (384, 16):
        h, h_next, z = _latents(width)
        _monitored(h, h_next, z)  # compiles kernels
        monitored = partial(_monitored, h, h_next, z)
        steps, records = [], []
        for _ in range(TURNS):
            steps.append(EVERY * cpu_ms(step) / 1e3)
            records.append(cpu_ms(monitored) / 1e3)
        name = f"{EVERY} steps of ViT-S/16 on {PAIRS} pairs of {SIZE}×{SIZE}, Monitor(every={EVERY}) of {width} latents"
        yield Comparison.of(name, steps, records, "s")


def _training_step() -> Callable[[], object]:
    """One step of LeJEPA with AdamW."""
    with forked_rng(0, "vit"):
        objective = LeJEPA(ViTConfig.s16().build((3, SIZE, SIZE)))
        x, x_next = torch.rand(2, PAIRS, 3, SIZE, SIZE)
    optimizer = torch.optim.AdamW(objective.parameters(), fused=True)
    nothing = torch.empty(PAIRS, 0)

    def step() -> None:
        objective(Pairs(x, x_next, nothing, nothing), 0).total.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _latents(width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Latents of all steps, and states that they contain."""
    with forked_rng(0, "latents"):
        h, noise = torch.randn(2, EVERY, PAIRS, width)
    return h, 0.9 * h + 0.19**0.5 * noise, h[:, :, :STATES].clone()


def _monitored(h: Tensor, h_next: Tensor, z: Tensor) -> None:
    monitor = Monitor(EVERY)
    for parts in zip(h, h_next, z, strict=True):
        monitor.update(*parts)
    assert len(monitor.history) == 1
