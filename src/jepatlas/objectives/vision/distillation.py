"""What DINO, iBOT and DINOv2 share: a student tells the prototypes that its slow teacher assigns.

    H(P_t, P_s) = −Σ_k P_t[k] log P_s[k],   P_s = softmax(s / τ_s),   P_t = softmax((t − c) / τ_t) or Sinkhorn(t / τ_t)

Assignments must not all be one prototype, and not all equal. The centre c, a moving mean of the teacher's logits, works
against the first, and the low temperature τ_t against the second; Sinkhorn's rounds make all prototypes as frequent.
Both are taken over the joint batch of all processes.

References: "Emerging Properties in Self-Supervised Vision Transformers"; "Unsupervised Learning of Visual Features by
Contrasting Cluster Assignments".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import gather_rows, mean_over_processes
from jepatlas.nn.ema import ema_update

__all__ = [
    "MovingCentre",
    "Sinkhorn",
    "across_views",
    "by_size",
    "cross_entropy",
    "entropy",
    "sinkhorn",
]


class MovingCentre(nn.Module):
    """c ← m c + (1 − m) · mean of the teacher's logits, of all micro-batches of a step. It moves with the step, so that
    looking changes nothing."""

    centre: Tensor

    def __init__(self, prototypes: int, momentum: float, accumulate: int = 1) -> None:
        super().__init__()
        self.momentum, self.seen = momentum, deque[Tensor](maxlen=accumulate)
        self.register_buffer("centre", torch.zeros(prototypes))

    @torch.no_grad()
    def forward(self, logits_mk: Tensor, temperature: float, mean_k: Tensor) -> Tensor:
        self.seen.append(mean_over_processes(mean_k))
        return F.softmax((logits_mk - self.centre) / temperature, -1)

    @torch.no_grad()
    def after_step(self) -> None:
        if self.seen:
            ema_update(self.centre, torch.stack([*self.seen]).mean(0), 1 - self.momentum)


class Sinkhorn(nn.Module):
    def forward(self, logits_mk: Tensor, temperature: float, mean_k: Tensor) -> Tensor:
        del mean_k
        return sinkhorn(logits_mk, temperature)

    def after_step(self) -> None:
        """It has nothing to remember."""


@torch.no_grad()
def sinkhorn(logits_mk: Tensor, temperature: float, rounds: int = 3) -> Tensor:
    """exp(logits / τ) with columns of equal sum and rows of sum 1, in turn; rows are last."""
    scaled = logits_mk / temperature
    peak = scaled.max() if len(scaled) else scaled.new_tensor(-math.inf)  # a process may have no rows
    q = (scaled - gather_rows(peak[None]).max()).exp()
    tiny = torch.finfo(q.dtype).tiny
    for _ in range(rounds):
        q = q / mean_over_processes(q.sum(0)).clamp_min(tiny)
        q = q / q.sum(1, keepdim=True).clamp_min(tiny)
    return q


def cross_entropy(teacher_mk: Tensor, student_mk: Tensor, temperature: float) -> Tensor:
    """H of each row's assignment and the student's logits: (m,)."""
    return -(teacher_mk * F.log_softmax(student_mk / temperature, -1)).sum(-1)


def across_views(teachers: Sequence[Tensor], students: Sequence[Tensor], temperature: float) -> Tensor:
    """The mean of H over all pairs of a teacher's crop and another crop of the student; crops are in one order."""
    pairs = [(t, s) for i, t in enumerate(teachers) for j, s in enumerate(students) if i != j]
    return torch.stack([cross_entropy(t, s, temperature).mean() for t, s in pairs]).mean()


def entropy(teacher_mk: Tensor) -> Tensor:
    """Mean entropy of assignments: 0 where each is one prototype, log K where all are equal."""
    return torch.special.entr(teacher_mk).sum(-1).mean()


def by_size(crops: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Neighbouring crops of one size together, in their order: each group is one pass through the encoder."""
    groups: list[tuple[Tensor, ...]] = []
    for crop in crops:
        if groups and groups[-1][0].shape == crop.shape:
            groups[-1] = (*groups[-1], crop)
        else:
            groups.append((crop,))
    return groups
