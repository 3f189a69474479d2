"""Health checks during training: stop runs with non-finite values or collapsed latents."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jepatlas.core.contracts import Batches
from jepatlas.core.distributed import gather_values, rank
from jepatlas.core.errors import InputError
from jepatlas.core.moments import Moments
from jepatlas.core.records import Estimate, Verdict

__all__ = ["HealthCheck", "check_batches_finite"]

PATIENCE = 3  # consecutive collapsed checks, so that a passing dip does not stop a run


class HealthCheck:
    """Checks the loss and the latents at regular steps.

    The only state is `flat`, the number of consecutive checks that found collapsed latents. It is saved in checkpoints,
    so a resumed run stops at the same step as an uninterrupted one.
    """

    def __init__(self, tolerance: float, grace: int) -> None:
        self.tolerance, self.grace = tolerance, grace
        self.flat = 0

    def check(self, step: int, loss: float, h_bd: Tensor, *, due: bool = True) -> Verdict | None:
        """A failing verdict, or None. `h_bd` are the latents of the current batch after the step.

        Latents after the step reveal non-finite weights even if the loss was still finite. A check before saving an
        interrupted run is not `due`: it looks for non-finite values only, because an uninterrupted run would not have
        made it.
        """
        moments = Moments.of(h_bd).over_processes()
        if not math.isfinite(loss) or not moments.covariance.isfinite().all():
            return _not_finite(step, loss)
        if self.tolerance == 0 or step < self.grace or not due:
            return None
        variances = torch.linalg.eigvalsh(moments.covariance)
        smallest = float(variances[0])
        threshold = self.tolerance * max(1.0, float(variances.mean()))
        self.flat = self.flat + 1 if smallest < threshold else 0
        if self.flat < PATIENCE:
            return None
        return _collapsed(step, smallest, moments.count, threshold)


def check_batches_finite(batches: Batches, numbers: range, accumulate: int) -> None:
    """Raise InputError on all processes if a batch holds non-finite values. Called after a non-finite loss."""
    message = None
    for number in numbers:
        message = _non_finite_message(batches(number), number, accumulate)
        if message is not None:
            break
    for found in gather_values(message):
        if found is not None:
            raise InputError(found)


def _non_finite_message(batch: object, number: int, accumulate: int) -> str | None:
    for name in ("x", "x_next"):
        value = getattr(batch, name, None)
        if value is None:
            continue
        finite = torch.isfinite(value)
        if not finite.all():
            row = int((~finite).flatten(1).any(1).nonzero()[0]) + rank() * len(value)
            return (
                f"'{name}' of batch {number} (step {number // accumulate + 1}) has {int((~finite).sum())} NaN or "
                f"infinite values, the first in row {row}. Remove them from the data and resume."
            )
    return None


def _not_finite(step: int, loss: float) -> Verdict:
    value = loss if not math.isfinite(loss) else math.nan
    advice = (
        f"The loss or the latents were not finite at step {step} (loss {loss:.3g}). Try a lower lr, gradient clipping "
        "(--clip 1), a longer warm-up, or float32 instead of bfloat16. The last checkpoint was saved before that."
    )
    return Verdict("finite_loss", value, value, value, step, None, None, "lower", False, advice)


def _collapsed(step: int, variance: float, n: int, threshold: float) -> Verdict:
    estimate = Estimate.exact(variance, n)
    advice = (
        f"The latents collapsed: at step {step} one direction has variance {variance:.2g}. Try a larger weight of the "
        "regulariser (LeJEPA: --objective.weight), a larger batch, a lower lr, or fewer latent dimensions."
    )
    return Verdict.judge("variance", estimate, direction="higher", threshold=threshold, good="", bad=advice)
