"""Runs that can no longer come to anything are stopped, with a verdict that says what happened and what to try."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import rank
from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.core.stats import Moments
from jepatlas.training.parallel import of_all_processes

__all__ = ["Health", "refuse_bad_batches"]

PATIENCE = 3  # collapsed checks in a row, so that a passing dip does not stop a run


class Health:
    """Looks at the loss and the latents now and then; remembers only how many looks in a row found them flat.

    A checkpoint keeps that number, so a run that was interrupted is stopped where it would have been anyway.
    """

    def __init__(self, tolerance: float, grace: int) -> None:
        self.tolerance, self.grace = tolerance, grace
        self.flat = 0

    def check(self, step: int, loss: float, h_bd: Tensor, *, due: bool = True) -> Verdict | None:
        """A failing verdict, or None. `h_bd` are the latents of the current batch, after the step: so a loss that was
        still finite does not hide weights that no longer are. A look that was not `due`, before an interrupted run is
        saved, sees only that: a run that went on would not have taken it."""
        moments = Moments.of(h_bd).over_processes()
        if not math.isfinite(loss) or not moments.covariance.isfinite().all():
            return _not_finite(step, loss)
        if self.tolerance == 0 or step < self.grace or not due:
            return None
        variances = torch.linalg.eigvalsh(moments.covariance)
        smallest, threshold = float(variances[0]), self.tolerance * max(1.0, float(variances.mean()))
        self.flat = self.flat + 1 if smallest < threshold else 0
        return _collapsed(step, smallest, moments.count, threshold) if self.flat >= PATIENCE else None


def refuse_bad_batches(batches: Batches, numbers: range, accumulate: int) -> None:
    """After a loss that is not finite: was it the data? Batches can be asked for again, so look, on all processes."""
    flaw = next(filter(None, (_flaw(batches(number), number, accumulate) for number in numbers)), None)
    for found in of_all_processes(flaw):
        if found is not None:
            raise InputError(found)


def _flaw(batch: Any, number: int, accumulate: int) -> str | None:
    for name in ("x", "x_next"):
        value = getattr(batch, name, None)
        if value is not None and not (fine := torch.isfinite(value)).all():
            row = int((~fine).flatten(1).any(1).nonzero()[0]) + rank() * len(value)
            count = int((~fine).sum())
            return (
                f"The data have {count} {'value that is' if count == 1 else 'values that are'} NaN or infinite in "
                f"'{name}' of batch {number} "
                f"(step {number // accumulate + 1}), the first in row {row}. Clean them and resume."
            )
    return None


def _not_finite(step: int, loss: float) -> Verdict:
    value = loss if not math.isfinite(loss) else math.nan
    advice = (
        f"By step {step} the loss or the latents were no longer finite (loss {loss:.3g}). Try a lower lr, gradient "
        "clipping (--clip 1), a longer warm-up, or float32 instead of bfloat16. "
        "A checkpoint, if there is one, is from before."
    )
    return Verdict("finite_loss", value, value, value, step, None, None, "lower", False, advice)


def _collapsed(step: int, variance: float, n: int, threshold: float) -> Verdict:
    estimate = Estimate(variance, variance, variance, n)
    advice = (
        f"The latents collapsed: by step {step} one direction has variance {variance:.2g}. Try a larger weight of the "
        "regulariser (LeJEPA: --objective.weight), a larger batch, a lower lr, or fewer latent dimensions."
    )
    return Verdict.judge("variance", estimate, direction="higher", threshold=threshold, good="", bad=advice)
