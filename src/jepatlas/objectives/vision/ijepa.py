"""I-JEPA: tell the latents of hidden blocks of an image from those of a visible context.

    L = mean over blocks B and patches i ∈ B of ℓ(p(f(x_C), i) − LN(f̄(x)_i)),   ℓ squared or smooth L1

f encodes the context's patches alone, f̄ follows f slowly and sees the whole image, LN normalises each target.

Unless others are asked for, masks follow "Social-JEPA", and so does the momentum (.996 to 1 by a cosine). The published
I-JEPA has smaller blocks of several shapes and a larger context (`MultiBlockMasks`), its momentum grows by a line
(`rise`), and it has no class token. Here the predictor reads what the latent is made of (see `predictors.py`), so that
the last output of the class token is trained where it is the latent.

References: "Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture"; "Social-JEPA:
Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from jepatlas.core.distributed import mean_over_processes
from jepatlas.core.patches import patch_grid, take_rows
from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.objectives.pairwise import at_least_float32
from jepatlas.objectives.vision.parts import CropObjective, VisionParts, with_tokens
from jepatlas.objectives.vision.vision_configs import IJEPAConfig

__all__ = ["IJEPA"]


class IJEPA(CropObjective):
    def __init__(self, parts: VisionParts, config: IJEPAConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or IJEPAConfig()
        with_tokens(parts.encoder, "I-JEPA")
        self.predictor = self.config.predictor.build(parts.dim)
        self.target = EMANetwork(parts.encoder)

    def forward(self, batch: Crops, step: int) -> Loss:
        told, targets = self._told(batch, step)
        with torch.autocast(told.device.type, enabled=False):
            loss = _distance(at_least_float32(told), targets, self.config.distance)
        return Loss(loss, {"prediction": loss.detach(), "target_spread": _spread(targets.flatten(0, 2))})

    @torch.no_grad()
    def each(self, batch: Crops, step: int) -> Tensor:
        """The loss of every image, (b,): where an agent's own prediction is good, and where it is not yet."""
        told, targets = self._told(batch, step)
        return _distance(at_least_float32(told), targets, self.config.distance, "none").flatten(1).mean(1)

    def _told(self, batch: Crops, step: int) -> tuple[Tensor, Tensor]:
        """What is told of the patches of each block, and what they are: (b, blocks, m, d) both."""
        encoder = with_tokens(self.encoder, "I-JEPA")
        grid = patch_grid((batch.x.shape[-2], batch.x.shape[-1]), encoder.patch)
        seen, asked = self.masks(batch.x, grid, step)
        tokens = encoder.tokens(batch.x, keep=seen)
        told = self.predictor(encoder.pooled(tokens), tokens, seen, asked, grid)
        return told, take_rows(self.targets(batch.x), asked.flatten(1)).view_as(told)

    def masks(self, x: Tensor, grid: tuple[int, int], step: int) -> tuple[Tensor, Tensor]:
        """The context's patches (b, k) and those of each block (b, blocks, m)."""
        seen, asked = self.config.masks.draw(len(x), grid, self.seed, step)
        return seen.to(x.device), asked.to(x.device)

    @torch.no_grad()
    def targets(self, x: Tensor) -> Tensor:
        """Latents of all patches, each normalised: (b, n, d)."""
        tokens = at_least_float32(with_tokens(self.target.network, "I-JEPA").tokens(x)[:, 1:])
        return F.layer_norm(tokens, tokens.shape[-1:])

    def after_step(self, step: int) -> None:
        self.target.update(self.encoder, momentum_at(self.config.momentum, step, self.steps, self.config.rise))


def _distance(told: Tensor, targets: Tensor, kind: str, reduction: str = "mean") -> Tensor:
    distance = F.mse_loss if kind == "squared" else F.smooth_l1_loss
    return distance(told, targets, reduction=reduction)


def _spread(targets_md: Tensor) -> Tensor:
    """Mean standard deviation over the joint batch: near 0 where all patches have one latent."""
    mean = mean_over_processes(targets_md.mean(0))
    return mean_over_processes((targets_md - mean).square().mean(0)).sqrt().mean()
