"""The head of DINO and its heirs: cosines between an embedding of the latent and K prototypes.

    z = MLP(h) / ‖MLP(h)‖,   logits = z · w_k / ‖w_k‖

This is a weight-normalised last layer whose gains are held at 1.
Reference: "Emerging Properties in Self-Supervised Vision Transformers".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.objectives.vision.vision_configs import DINOHeadConfig

__all__ = ["DINOHead"]


class DINOHead(nn.Module):
    def __init__(self, dim: int, config: DINOHeadConfig) -> None:
        super().__init__()
        hidden = [nn.Linear(dim, config.width), nn.GELU(), nn.Linear(config.width, config.width), nn.GELU()]
        self.mlp = nn.Sequential(*hidden, nn.Linear(config.width, config.bottleneck))
        reach = config.bottleneck**-0.5
        self.prototypes = nn.Parameter(torch.empty(config.prototypes, config.bottleneck).uniform_(-reach, reach))
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):  # at the published widths, the published deviation of 0.02
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, *, held: bool = False) -> Tensor:
        """(m, d) → (m, K)"""
        return self.cosines(self.directions(h), held=held)

    def directions(self, h: Tensor) -> Tensor:
        return F.normalize(self.mlp(h), dim=-1)

    def cosines(self, z: Tensor, *, held: bool = False) -> Tensor:
        """Linear in z, so the mean of cosines is that of the mean direction. `held` prototypes have gradient zero."""
        weights = self.prototypes.detach() + 0 * self.prototypes if held else self.prototypes
        return z @ F.normalize(weights, dim=-1).to(z.dtype).T
