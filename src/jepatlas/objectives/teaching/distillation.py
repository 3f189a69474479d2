"""Knowledge distillation: a trained linear head of the student says what the teacher said.

    logits    T² · KL(softmax(t/T) ‖ softmax(A z_S/T)),   t the logits of a probe on the teacher's latents
    latents   ‖z_T − A z_S‖² / d_T                        what is told has unit variance

The first is the classical one ("Distilling the Knowledge in a Neural Network") and needs labels where the teacher is;
the second is regression on hints ("FitNets: Hints for Thin Deep Nets"). A is trained along with the student, where
migration fits it in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.objectives.teaching.student import Student, check_weight
from jepatlas.objectives.vision.parts import CropObjective

__all__ = ["Distillation", "DistillationConfig"]


@dataclass(frozen=True)
class DistillationConfig:
    kind: ClassVar[str] = "distillation"

    weight: float = 1.0
    """Of the distilled term beside the student's own."""
    tells: Literal["logits", "latents"] = "logits"
    """What the teacher tells: a probe's logits, for which it needs labels, or its latents."""
    temperature: float = 2.0
    """T, for logits."""

    def __post_init__(self) -> None:
        check_literals(self)
        check_weight("Distillation", self.weight)
        if not 0 < self.temperature < float("inf"):
            raise InputError(
                f"Distillation's temperature must be positive and finite, but {self.temperature} was given."
            )

    def build(self, own: CropObjective, dim: int, told_dim: int) -> Student:
        return Student(own, Distillation(dim, told_dim, self), self.weight)


class Distillation(nn.Module):
    def __init__(self, dim: int, told_dim: int, config: DistillationConfig | None = None) -> None:
        super().__init__()
        self.config = config or DistillationConfig()
        self.head = nn.Linear(dim, told_dim)

    def forward(self, h: Tensor, told: Tensor) -> Tensor:
        said = self.head(h)
        return F.mse_loss(said, told) if self.config.tells == "latents" else soft(told, said, self.config.temperature)

    def after_step(self, step: int) -> None:
        """The head is trained like all else."""


def soft(told_bk: Tensor, said_bk: Tensor, temperature: float) -> Tensor:
    """T² times the mean Kullback–Leibler divergence of softened answers; so its gradient does not fade with T."""
    told, said = (F.log_softmax(logits / temperature, 1) for logits in (told_bk, said_bk))
    return temperature**2 * F.kl_div(said, told, reduction="batchmean", log_target=True)
