"""How a run is trained. Batch sizes are global: over all processes and micro-batches together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Literal

import torch

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, require
from jepatlas.training.schedule import OneCycleSchedule, Schedule

__all__ = ["TrainingConfig"]

REASON = 100  # characters of torch's own words, of which there may be a thousand


@dataclass(frozen=True)
class TrainingConfig:
    steps: int = 4000
    """Optimiser steps."""
    batch_size: int = 256
    """Pairs in one step, over all processes."""
    accumulate: int = 1
    """Micro-batches that make up one step; batch statistics are those of each micro-batch."""
    lr: float = 1e-2
    """Base learning rate of AdamW."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of AdamW's averages of the gradient and of its square."""
    weight_decay: float = 1e-2
    """Decoupled decay of weights, as AdamW has it."""
    decayed: Literal["all", "matrices"] = "all"
    """Which weights decay: all, or those of two axes and more, and not biases, normalisations and single tokens."""
    schedule: Schedule = field(default_factory=OneCycleSchedule)
    """How the learning rate goes."""
    clip: float | None = 1.0
    """Largest gradient norm."""
    ema: float | None = None
    """Decay of a moving average of the weights, which is then what is certified."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 is mixed precision; slower than float32 on most CPUs."""
    device: str = "cpu"
    """cpu, cuda or cuda:1."""
    threads: int = 1
    """CPU threads of one process. A small network takes longer with several; give a large one more."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """How several processes share the work: whole copies, or sharded weights for large models."""
    log_every: int = 50
    """Steps between entries in metrics.jsonl; health is checked then, too."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    keep: int = 2
    """Checkpoints to keep."""
    collapse: float = 1e-4
    """Stop when the smallest variance of any latent direction stays below this; 0 never stops."""
    grace: int = 500
    """Steps before a collapse is looked for."""
    track: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Where to send metrics besides metrics.jsonl."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("steps", "batch_size", "accumulate", "threads", "log_every", "checkpoint_every", "keep"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        for name in ("lr", "clip"):
            if (value := getattr(self, name)) is not None and not 0 < value < math.inf:
                raise InputError(f"{name} must be positive and finite, but {value} was given.")
        for name in ("weight_decay", "collapse", "grace"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} must be finite and not negative, but {getattr(self, name)} was given.")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise InputError(f"betas lie between 0 and 1, 1 left out, but {self.betas} were given.")
        if self.ema is not None and not 0 < self.ema < 1:
            raise InputError(f"ema must lie between 0 and 1, but {self.ema} was given.")
        if self.batch_size % self.accumulate:
            raise InputError(f"batch_size {self.batch_size} does not divide into {self.accumulate} micro-batches.")

    def check_machine(self) -> torch.device:
        """The device; an `InputError` where it, or an extra that is asked for, is not there."""
        for name in self.track:
            require(name, "track", f"--track {name}")
        return self._device()

    def device_here(self) -> torch.device:
        """The device, or the CPU where this machine has none such: what was trained elsewhere is used anywhere."""
        try:
            return self._device()
        except InputError:
            return torch.device("cpu")

    def _device(self) -> torch.device:
        try:
            number = torch.zeros((), device=self.device)
            number.item()  # a "meta" tensor is made, but holds nothing
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = shorten(str(error).split(". ")[0], REASON, placeholder=" ...")
            raise InputError(f"device '{self.device}' cannot be used here ({reason}). Try --device cpu.") from error
        return number.device
