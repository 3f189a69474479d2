"""Configuration of a training run, and learning-rate schedules. This module does not import torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from textwrap import shorten
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError, check_argument, check_count, check_not_negative, require

if TYPE_CHECKING:
    import torch

__all__ = ["ConstantSchedule", "CosineSchedule", "OneCycleSchedule", "Schedule", "TrainingConfig"]

ERROR_LENGTH = 100  # error messages of torch may have thousands of characters


@dataclass(frozen=True)
class ConstantSchedule:
    """Linear warm-up, then a constant learning rate."""

    kind: ClassVar[str] = "constant"

    warmup: int = 0
    """Steps of linear warm-up from zero."""

    def __post_init__(self) -> None:
        check_not_negative("warmup", self.warmup)

    def factor(self, step: int, steps: int) -> float:
        """Factor on the base learning rate at `step` of `steps`."""
        return _warmup_factor(step, self.warmup)


@dataclass(frozen=True)
class CosineSchedule:
    """Linear warm-up, an optional plateau, then cosine decay."""

    kind: ClassVar[str] = "cosine"

    warmup: int = 200
    """Steps of linear warm-up from zero."""
    hold: int = 0
    """Steps at the full rate before the decay."""
    floor: float = 0.0
    """Final factor, reached one step after the last."""

    def __post_init__(self) -> None:
        check_not_negative("warmup", self.warmup)
        check_not_negative("hold", self.hold)
        check_not_negative("floor", self.floor)

    def factor(self, step: int, steps: int) -> float:
        """Factor on the base learning rate at `step` of `steps`."""
        start = self.warmup + self.hold
        if step < start:
            return _warmup_factor(step, self.warmup)
        progress = min(1.0, (step - start) / max(1, steps - start))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True)
class OneCycleSchedule:
    """Cosine increase to the full rate, then cosine decay to nearly zero ("Super-Convergence")."""

    kind: ClassVar[str] = "one-cycle"

    peak: float = 0.3
    """Share of the steps before the peak."""
    first: float = 0.04
    """Initial factor."""
    last: float = 1e-4
    """Final factor."""

    def __post_init__(self) -> None:
        check_argument("peak", self.peak, 0 < self.peak < 1, "between 0 and 1")
        check_not_negative("first", self.first)
        check_not_negative("last", self.last)

    def factor(self, step: int, steps: int) -> float:
        """Factor on the base learning rate at `step` of `steps`."""
        turn = self.peak * steps
        if step < turn:
            return _cosine_between(self.first, 1.0, step / turn)
        return _cosine_between(1.0, self.last, min(1.0, (step - turn) / max(1.0, steps - 1 - turn)))


Schedule = ConstantSchedule | CosineSchedule | OneCycleSchedule


def _warmup_factor(step: int, warmup: int) -> float:
    return min(1.0, (step + 1) / (warmup + 1))


def _cosine_between(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * progress)) / 2


@dataclass(frozen=True)
class TrainingConfig:
    """How a run is trained. Batch sizes count the rows of all processes and micro-batches together."""

    steps: int = 4000
    """Optimiser steps."""
    batch_size: int = 256
    """Pairs per step, over all processes."""
    accumulate: int = 1
    """Micro-batches per step. Batch statistics are those of each micro-batch."""
    lr: float = 1e-2
    """Base learning rate of AdamW."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay rates of AdamW's moment estimates."""
    weight_decay: float = 1e-2
    """Decoupled weight decay of AdamW."""
    decayed: Literal["all", "matrices"] = "all"
    """Parameters with weight decay: all, or only those with two or more axes (no biases, norms or single tokens)."""
    schedule: Schedule = field(default_factory=OneCycleSchedule)
    """Learning-rate schedule."""
    clip: float | None = 1.0
    """Maximum gradient norm."""
    ema: float | None = None
    """Decay of an exponential moving average of the weights, which is then the model that is certified."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision; bfloat16 is mixed precision, and slower than float32 on most CPUs."""
    device: str = "cpu"
    """cpu, cuda or cuda:1."""
    threads: int = 1
    """CPU threads per process. Small networks are slower with several threads."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """Data parallelism: replicated weights, or sharded weights for large models."""
    log_every: int = 50
    """Steps between entries of metrics.jsonl and health checks."""
    checkpoint_every: int = 1000
    """Steps between checkpoints."""
    keep: int = 2
    """Number of checkpoints to keep."""
    collapse: float = 1e-4
    """Stop when the smallest variance of a latent direction stays below this value; 0 disables the check."""
    grace: int = 500
    """Steps before the first collapse check."""
    track: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Experiment trackers to use besides metrics.jsonl."""

    def __post_init__(self) -> None:
        check_literals(self)
        for name in ("steps", "batch_size", "accumulate", "threads", "log_every", "checkpoint_every", "keep"):
            check_count(name, getattr(self, name))
        for name in ("lr", "clip"):
            value = getattr(self, name)
            check_argument(name, value, value is None or 0 < value < math.inf, "positive and finite")
        for name in ("weight_decay", "collapse", "grace"):
            check_not_negative(name, getattr(self, name))
        check_argument("betas", self.betas, all(0 <= beta < 1 for beta in self.betas), "in [0, 1)")
        check_argument("ema", self.ema, self.ema is None or 0 < self.ema < 1, "between 0 and 1")
        if self.batch_size % self.accumulate:
            raise InputError(f"batch_size {self.batch_size} is not divisible by accumulate {self.accumulate}.")

    def check_machine(self) -> torch.device:
        """The device; raises InputError if it or a required extra is not available."""
        for name in self.track:
            require(name, "track", f"--track {name}")
        return self._device()

    def device_here(self) -> torch.device:
        """The device, or the CPU if this machine has no such device."""
        import torch  # noqa: PLC0415

        try:
            return self._device()
        except InputError:
            return torch.device("cpu")

    def _device(self) -> torch.device:
        import torch  # noqa: PLC0415

        try:
            scalar = torch.zeros((), device=self.device)
            scalar.item()  # fails on the device "meta", which allocates nothing
        except (RuntimeError, AssertionError, ImportError) as error:
            reason = shorten(str(error).split(". ")[0], ERROR_LENGTH, placeholder=" ...")
            raise InputError(f"device '{self.device}' is not available ({reason}). Use --device cpu.") from error
        return scalar.device
