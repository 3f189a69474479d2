"""Knowledge distillation: a trained linear head of the student says what the teacher said.

    logits    T² · KL(softmax(t/T) ‖ softmax(A z_S/T)),   t the logits of a probe on the teacher's latents
    latents   ‖z_T − A z_S‖² / d_T                        what is told has unit variance

The first is the classical one ("Distilling the Knowledge in a Neural Network") and needs labels where the teacher is;
the second is regression on hints ("FitNets: Hints for Thin Deep Nets"). A is trained along with the student, where
migration fits it in closed form.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.objectives.teaching.teaching_configs import DistillationConfig

__all__ = ["Distillation"]


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
