"""A student that learns from its own images and from a teacher's stored outputs on shared states.

    L = L_own(crops) + weight · lesson(f(x), target)

The teacher itself is not needed: for each shared state only its output is given. The lessons are

    migration               β · ‖z_T − W z_S‖² / Σ Var(z_T),   W fitted in closed form to the pairs seen so far
    distillation, logits    T² · KL(softmax(t/T) ‖ softmax(A z_S/T)),   t the logits of a probe on the teacher's latents
    distillation, latents   ‖z_T − A z_S‖² / d_T,   the target has unit variance

Migration with W from student to teacher, as published, requires that the student's latents contain the teacher's
information. The opposite direction, ‖z_S − W z_T‖², requires that they contain nothing else, and is minimised by a
constant student; it is available for comparison. Widths may differ, and labels are not needed. In distillation the
linear head A is trained with the student.

References: "Social-JEPA: Emergent Geometric Isomorphism in Independently Trained World Models", section 3.7 and
Algorithm 2; "Distilling the Knowledge in a Neural Network"; "FitNets: Hints for Thin Deep Nets".
"""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss, PairedCrops
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.teaching.running_map import RunningMap
from jepatlas.objectives.teaching.teaching_configs import DistillationConfig, MigrationConfig
from jepatlas.objectives.vision.crop_objective import CropObjective

__all__ = ["Distillation", "Migration", "Student"]


class Lesson(Protocol):
    """The loss of a student relative to the teacher's outputs."""

    def __call__(self, h: Tensor, target: Tensor) -> Tensor: ...  # (b, d), (b, k) → ()

    def after_step(self, step: int) -> None: ...


class Student(nn.Module):
    """Any objective on images with an additional lesson; `encode` is that of the student."""

    def __init__(self, own: CropObjective, lesson: nn.Module, weight: float) -> None:
        super().__init__()
        self.own, self.weight = own, weight
        self.lesson = lesson

    def forward(self, batch: PairedCrops, step: int) -> Loss:
        own = self.own(batch.own[0], step)
        image, target = batch.shared
        h = at_least_float32(self.own.encode(image))
        if len(target) != len(h):
            raise InputError(
                f"The teacher's outputs must match the shared states, but there are {len(target)} and {len(h)} rows."
            )
        with torch.autocast(h.device.type, enabled=False):
            taught = self.lesson(h, target.to(h))
        terms = {**own.terms, "own": own.total.detach(), "taught": taught.detach()}
        return Loss(own.total + self.weight * taught, terms)

    def encode(self, x: Tensor) -> Tensor:
        return self.own.encode(x)

    def after_step(self, step: int) -> None:
        self.own.after_step(step)
        lesson: Lesson = self.lesson  # pyright: ignore[reportAssignmentType]
        lesson.after_step(step)

    def smallest_batch(self, dim: int) -> int:
        return self.own.smallest_batch(dim)


class Migration(nn.Module):
    def __init__(self, dim: int, target_dim: int, config: MigrationConfig | None = None) -> None:
        super().__init__()
        config = config or MigrationConfig()
        self.to_teacher = config.through == "student-to-teacher"
        widths = (dim, target_dim) if self.to_teacher else (target_dim, dim)
        self.map = RunningMap(*widths, config.map)

    def forward(self, h: Tensor, target: Tensor) -> Tensor:
        pair = (h, target) if self.to_teacher else (target, h)
        self.map.observe(*pair)
        return self.map(*pair)

    def after_step(self, step: int) -> None:
        self.map.after_step(step)


class Distillation(nn.Module):
    def __init__(self, dim: int, target_dim: int, config: DistillationConfig | None = None) -> None:
        super().__init__()
        self.config = config or DistillationConfig()
        self.head = nn.Linear(dim, target_dim)

    def forward(self, h: Tensor, target: Tensor) -> Tensor:
        predicted = self.head(h)
        if self.config.tells == "latents":
            return F.mse_loss(predicted, target)
        return _soft_cross_entropy(target, predicted, self.config.temperature)

    def after_step(self, step: int) -> None:
        """The head is trained by gradient descent."""


def _soft_cross_entropy(target_bk: Tensor, predicted_bk: Tensor, temperature: float) -> Tensor:
    """T² times the mean KL divergence of softened logits; the factor makes the gradient scale independent of T."""
    target, predicted = (F.log_softmax(logits / temperature, 1) for logits in (target_bk, predicted_bk))
    return temperature**2 * F.kl_div(predicted, target, reduction="batchmean", log_target=True)
