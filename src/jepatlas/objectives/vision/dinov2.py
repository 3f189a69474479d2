"""DINOv2: the losses of DINO and iBOT with separate heads, Sinkhorn assignments, and KoLeo on the latents.

    L = image + patch + 0.1 · KoLeo(h of the first crop),   KoLeo(h) = −(1/b) Σ_i log ‖z_i − z_{nn(i)}‖,   z = h / ‖h‖

KoLeo pushes each latent away from its nearest neighbour in the joint batch of all processes, so that the loss does not
depend on their number (published: in the batch of each process).

References: "DINOv2: Learning Robust Visual Features without Supervision"; "Spreading vectors for similarity search".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from jepatlas.core.distributed import gather_rows, rank
from jepatlas.core.records import Crops, Loss
from jepatlas.objectives.vision.crop_objective import VisionParts
from jepatlas.objectives.vision.masked_distillation import MaskedDistillation
from jepatlas.objectives.vision.prototype_configs import DINOv2Config
from jepatlas.objectives.vision.self_distillation import MovingCentre, Sinkhorn

__all__ = ["DINOv2", "koleo"]

CENTRE_MOMENTUM = 0.9


class DINOv2(MaskedDistillation):
    def __init__(self, parts: VisionParts, config: DINOv2Config | None = None) -> None:
        self.config = config = config or DINOv2Config()
        heads = config.head.build(parts.dim), config.head.build(parts.dim)
        centrings = _centring(config, parts), _centring(config, parts)
        super().__init__(parts, heads, centrings, config.masks, config.temperature)

    def forward(self, batch: Crops, step: int) -> Loss:
        losses = self.distil(batch, step, held=self.optimiser_step(step) < self.config.head.held * self.steps)
        with torch.autocast(batch.x.device.type, enabled=False):
            spread = koleo(losses.latents.chunk(2)[0])
        total = losses.image + losses.patch + self.config.koleo * spread
        terms = {
            "image": losses.image,
            "patch": losses.patch,
            "koleo": spread,
            "teacher_entropy": losses.entropy,
        }
        return Loss(total, {name: term.detach() for name, term in terms.items()})

    def after_step(self, step: int) -> None:
        self.update_teacher(self.config.momentum, step)


def _centring(config: DINOv2Config, parts: VisionParts) -> MovingCentre | Sinkhorn:
    if config.centring == "sinkhorn":
        return Sinkhorn()
    return MovingCentre(config.head.prototypes, CENTRE_MOMENTUM, parts.accumulate)


def koleo(h_bd: Tensor, epsilon: float = 1e-8) -> Tensor:
    """The KoLeo regulariser: negative mean log distance to the nearest neighbour on the sphere."""
    z = F.normalize(h_bd, dim=1)
    others = gather_rows(z)
    own = torch.arange(len(z), device=z.device)
    with torch.no_grad():
        cosines = z @ others.T
        cosines[own, own + rank() * len(z)] = -2  # exclude the row itself
        nearest = cosines.argmax(1)
    return -torch.log((z - others[nearest]).norm(dim=1) + epsilon).mean()
