"""Runs that can no longer come to anything are stopped, with a verdict that says what happened and what to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jepatlas.base.errors import InputError
from jepatlas.base.records import Estimate, Verdict
from jepatlas.base.stats import Moments

__all__ = ["Health", "smallest_variance"]

PATIENCE = 3  # collapsed checks in a row, so that a passing dip does not stop a run


class Health:
    """Looks at the loss and the latents now and then; remembers only how long they have been flat."""

    def __init__(self, tolerance: float, grace: int) -> None:
        self.tolerance, self.grace = tolerance, grace
        self.flat = 0

    def check(self, step: int, loss: float, h_bd: Tensor) -> Verdict | None:
        """A failing verdict, or None. `h_bd` are the latents of the current batch."""
        if not math.isfinite(loss):
            return _not_finite(step, loss)
        if self.tolerance == 0 or step < self.grace:
            return None
        variance, scale = smallest_variance(h_bd)
        self.flat = self.flat + 1 if variance < self.tolerance * max(1.0, scale) else 0
        return _collapsed(step, variance, len(h_bd), self.tolerance) if self.flat >= PATIENCE else None


def smallest_variance(h_bd: Tensor) -> tuple[float, float]:
    """Smallest and mean eigenvalue of Cov h over the joint batch of all processes."""
    values = torch.linalg.eigvalsh(Moments.of(h_bd).over_processes().covariance)
    return float(values[0]), float(values.mean())


def refuse_bad_batches(batches: Callable[[int], Any], first: int, last: int) -> None:
    """After a loss that is not finite: was it the data? Batches can be asked for again, so look."""
    for step in range(first, last):
        x = batches(step).x
        bad = ~torch.isfinite(x)
        if bad.any():
            raise InputError(
                f"The data of step {step} have {int(bad.sum())} values that are NaN or infinite in 'x' "
                f"(the first in row {int(bad.flatten(1).any(1).nonzero()[0])}). Clean them and resume."
            )


def _not_finite(step: int, loss: float) -> Verdict:
    advice = (
        f"The loss became {loss} by step {step}. Try a lower lr, gradient clipping (--clip 1), a longer warm-up, "
        "or float32 instead of bfloat16. The last checkpoint is from before."
    )
    return Verdict("finite_loss", loss, loss, loss, step, None, None, "lower", False, advice)


def _collapsed(step: int, variance: float, n: int, tolerance: float) -> Verdict:
    estimate = Estimate(variance, variance, variance, n)
    advice = (
        f"The latents collapsed: by step {step} one direction has variance {variance:.2g}. Try a larger weight of the "
        "regulariser (LeJEPA: --objective.weight), a larger batch, a lower lr, or fewer latent dimensions."
    )
    return Verdict.judge("variance", estimate, direction="higher", threshold=tolerance, good="", bad=advice)
