"""Self-distillation with prototypes: the building blocks of SwAV, DINO, iBOT and DINOv2.

A student predicts the prototype assignments of its teacher, a moving average of itself:

    H(P_t, P_s) = −Σ_k P_t[k] log P_s[k],   P_s = softmax(s / τ_s),   P_t = softmax((t − c) / τ_t) or Sinkhorn(t / τ_t)

The centre c, a moving mean of the teacher's logits, prevents assignments to a single prototype, and the low temperature
τ_t prevents uniform assignments. Sinkhorn iterations instead make all prototypes equally frequent. Both use the joint
batch of all processes.

The head computes cosines between an embedding of the latent and K prototypes (a weight-normalised linear layer with
gains of 1):

    z = MLP(h) / ‖MLP(h)‖,   logits = z · w_k / ‖w_k‖

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
from jepatlas.objectives.vision.prototype_configs import DINOHeadConfig

__all__ = ["DINOHead", "MovingCentre", "Sinkhorn", "across_views", "cross_entropy", "entropy", "sinkhorn"]


class DINOHead(nn.Module):
    def __init__(self, dim: int, config: DINOHeadConfig) -> None:
        super().__init__()
        hidden = [nn.Linear(dim, config.width), nn.GELU(), nn.Linear(config.width, config.width), nn.GELU()]
        self.mlp = nn.Sequential(*hidden, nn.Linear(config.width, config.bottleneck))
        bound = config.bottleneck**-0.5
        self.prototypes = nn.Parameter(torch.empty(config.prototypes, config.bottleneck).uniform_(-bound, bound))
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):  # equals the published standard deviation 0.02 at the published widths
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, *, held: bool = False) -> Tensor:
        """(m, d) → (m, K)"""
        return self.cosines(self.directions(h), held=held)

    def directions(self, h: Tensor) -> Tensor:
        return F.normalize(self.mlp(h), dim=-1)

    def cosines(self, z: Tensor, *, held: bool = False) -> Tensor:
        """Linear in z. Prototypes that are `held` have zero gradient."""
        weights = self.prototypes.detach() + 0 * self.prototypes if held else self.prototypes
        return z @ F.normalize(weights, dim=-1).to(z.dtype).T


class MovingCentre(nn.Module):
    """Softmax with centring: c ← m c + (1 − m) · mean of the teacher's logits over the micro-batches of a step.

    The centre is updated in `after_step`, so evaluating the loss does not change it.
    """

    centre: Tensor

    def __init__(self, prototypes: int, momentum: float, accumulate: int = 1) -> None:
        super().__init__()
        self.momentum = momentum
        self.means = deque[Tensor](maxlen=accumulate)
        self.register_buffer("centre", torch.zeros(prototypes))

    @torch.no_grad()
    def forward(self, logits_mk: Tensor, temperature: float, mean_k: Tensor) -> Tensor:
        self.means.append(mean_over_processes(mean_k))
        return F.softmax((logits_mk - self.centre) / temperature, -1)

    @torch.no_grad()
    def after_step(self) -> None:
        if self.means:
            ema_update(self.centre, torch.stack([*self.means]).mean(0), 1 - self.momentum)


class Sinkhorn(nn.Module):
    """`sinkhorn` with the interface of `MovingCentre`."""

    def forward(self, logits_mk: Tensor, temperature: float, mean_k: Tensor) -> Tensor:
        del mean_k
        return sinkhorn(logits_mk, temperature)

    def after_step(self) -> None:
        """Stateless."""


@torch.no_grad()
def sinkhorn(logits_mk: Tensor, temperature: float, rounds: int = 3) -> Tensor:
    """Normalise exp(logits / τ) alternately to columns of equal sum and rows of sum 1, ending with rows."""
    scaled = logits_mk / temperature
    peak = scaled.max() if len(scaled) else scaled.new_tensor(-math.inf)  # a process may have no rows
    q = (scaled - gather_rows(peak[None]).max()).exp()
    tiny = torch.finfo(q.dtype).tiny
    for _ in range(rounds):
        q = q / mean_over_processes(q.sum(0)).clamp_min(tiny)
        q = q / q.sum(1, keepdim=True).clamp_min(tiny)
    return q


def cross_entropy(teacher_mk: Tensor, student_mk: Tensor, temperature: float) -> Tensor:
    """H of the teacher's assignments and the student's logits: (m,)."""
    return -(teacher_mk * F.log_softmax(student_mk / temperature, -1)).sum(-1)


def across_views(teachers: Sequence[Tensor], students: Sequence[Tensor], temperature: float) -> Tensor:
    """Mean of H over all pairs of a teacher crop and a different student crop; both lists start with the same crops."""
    losses = []
    for i, teacher in enumerate(teachers):
        for j, student in enumerate(students):
            if i != j:
                losses.append(cross_entropy(teacher, student, temperature).mean())
    return torch.stack(losses).mean()


def entropy(teacher_mk: Tensor) -> Tensor:
    """Mean entropy of the assignments: 0 for one-hot, log K for uniform ones."""
    return torch.special.entr(teacher_mk).sum(-1).mean()
