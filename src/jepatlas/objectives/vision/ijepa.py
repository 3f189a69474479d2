"""I-JEPA: predict the latents of masked blocks of an image from a visible context.

    L = mean over blocks B and patches i ∈ B of ℓ(p(f(x_C), i) − LN(f̄(x)_i)),   ℓ squared or smooth L1

f encodes only the context patches, f̄ is its moving average on the whole image, and LN normalises each target.

The predictors p are
- narrow: a transformer on the context tokens and one mask token per position, as published for I-JEPA;
- mlp:    W₂ GELU(LayerNorm(W₁ [h, s])), from the pooled context h and the position s, as published for Social-JEPA;
- linear: W [h, s], a weak baseline: its predictions at two positions differ by the same offset in all images.

All predictors use what the latent is made of: the transformer attends to the class token and to all patches, the others
receive the pooled latent. The loss therefore trains the latent, be it the class token or a mean.

Masks and the momentum schedule (0.996 to 1, cosine) default to those of Social-JEPA. The published I-JEPA has smaller
blocks of varying shape and a larger context (`MultiBlockMasks`), a linear momentum schedule (`rise`), and no class
token.

References: "Self-Supervised Learning from Images with a Joint-Embedding Predictive Architecture"; "Social-JEPA:
Emergent Geometric Isomorphism in Independently Trained World Models".
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jepatlas.core.distributed import mean_over_processes
from jepatlas.core.patches import patch_grid, take_rows
from jepatlas.core.records import Crops, Loss
from jepatlas.nn.ema import EMANetwork, momentum_at
from jepatlas.nn.transformer import Transformer, sincos_positions
from jepatlas.objectives.pair_objective import at_least_float32
from jepatlas.objectives.vision.crop_objective import CropObjective, VisionParts, token_encoder
from jepatlas.objectives.vision.masks import Grid
from jepatlas.objectives.vision.prediction_configs import IJEPAConfig, MLPPredictorConfig, NarrowPredictorConfig

__all__ = ["IJEPA", "LinearPredictor", "MLPPredictor", "NarrowPredictor"]


class IJEPA(CropObjective):
    def __init__(self, parts: VisionParts, config: IJEPAConfig | None = None) -> None:
        super().__init__(parts)
        self.config = config or IJEPAConfig()
        token_encoder(parts.encoder, "I-JEPA")
        self.predictor = self.config.predictor.build(parts.dim)
        self.target = EMANetwork(parts.encoder)

    def forward(self, batch: Crops, step: int) -> Loss:
        predicted, targets = self._predict(batch, step)
        with torch.autocast(predicted.device.type, enabled=False):
            loss = _distance(at_least_float32(predicted), targets, self.config.distance)
        return Loss(loss, {"prediction": loss.detach(), "target_spread": _spread(targets.flatten(0, 2))})

    @torch.no_grad()
    def loss_per_image(self, batch: Crops, step: int) -> Tensor:
        """The prediction loss of each image: (b,)."""
        predicted, targets = self._predict(batch, step)
        return _distance(at_least_float32(predicted), targets, self.config.distance, "none").flatten(1).mean(1)

    def _predict(self, batch: Crops, step: int) -> tuple[Tensor, Tensor]:
        """Predictions and targets of the patches of each block: (b, blocks, m, d) both."""
        encoder = token_encoder(self.encoder, "I-JEPA")
        grid = patch_grid((batch.x.shape[-2], batch.x.shape[-1]), encoder.patch)
        context, blocks = self.masks(batch.x, grid, step)
        tokens = encoder.tokens(batch.x, keep=context)
        predicted = self.predictor(encoder.pooled(tokens), tokens, context, blocks, grid)
        return predicted, take_rows(self.targets(batch.x), blocks.flatten(1)).view_as(predicted)

    def masks(self, x: Tensor, grid: Grid, step: int) -> tuple[Tensor, Tensor]:
        """Indices of the context patches (b, k) and of the patches of each block (b, blocks, m)."""
        context, blocks = self.config.masks.draw(len(x), grid, self.seed, step)
        return context.to(x.device), blocks.to(x.device)

    @torch.no_grad()
    def targets(self, x: Tensor) -> Tensor:
        """Normalised latents of all patches: (b, n, d)."""
        tokens = at_least_float32(token_encoder(self.target.network, "I-JEPA").tokens(x)[:, 1:])
        return F.layer_norm(tokens, tokens.shape[-1:])

    def after_step(self, step: int) -> None:
        self.target.update(self.encoder, momentum_at(self.config.momentum, step, self.steps, self.config.rise))


def _distance(predicted: Tensor, targets: Tensor, kind: str, reduction: str = "mean") -> Tensor:
    distance = F.mse_loss if kind == "squared" else F.smooth_l1_loss
    return distance(predicted, targets, reduction=reduction)


def _spread(targets_md: Tensor) -> Tensor:
    """Mean standard deviation over the joint batch: near 0 if the targets collapsed."""
    mean = mean_over_processes(targets_md.mean(0))
    return mean_over_processes((targets_md - mean).square().mean(0)).sqrt().mean()


class NarrowPredictor(nn.Module):
    def __init__(self, dim: int, config: NarrowPredictorConfig) -> None:
        super().__init__()
        self.width = config.width
        self.enter, self.leave = nn.Linear(dim, config.width), nn.Linear(config.width, dim)
        self.mask_token = nn.Parameter(torch.empty(config.width).normal_(std=0.02))
        self.body = Transformer(config.width, config.depth, config.heads)

    def forward(self, latent: Tensor, tokens: Tensor, context: Tensor, blocks: Tensor, grid: Grid) -> Tensor:
        """Each block is predicted separately: (b, 1 + k, d), (b, k), (b, blocks, m) → (b, blocks, m, d)."""
        del latent  # the tokens contain it
        b, count, _ = blocks.shape
        positions = sincos_positions(grid, self.width).to(tokens).expand(b, -1, -1)
        visible = self.enter(tokens)  # the class token has no position
        visible = torch.cat([visible[:, :1], visible[:, 1:] + take_rows(positions, context)], 1)
        masks = self.mask_token + take_rows(positions, blocks.flatten(1)).unflatten(1, (count, -1))
        sequence = torch.cat([visible[:, None].expand(-1, count, -1, -1), masks.to(visible.dtype)], 2)
        predicted = self.body(sequence.flatten(0, 1))[:, tokens.shape[1] :]
        return self.leave(predicted).unflatten(0, (b, count))


class MLPPredictor(nn.Module):
    def __init__(self, dim: int, config: MLPPredictorConfig) -> None:
        super().__init__()
        # Two halves of one layer on [h, s]: the product with h is computed once per image, not once per position.
        self.from_latent, self.from_place = nn.Linear(dim, config.width), nn.Linear(dim, config.width, bias=False)
        self.out = nn.Sequential(nn.LayerNorm(config.width), nn.GELU(), nn.Linear(config.width, dim))

    def forward(self, latent: Tensor, tokens: Tensor, context: Tensor, blocks: Tensor, grid: Grid) -> Tensor:
        """(b, d), (b, blocks, m) → (b, blocks, m, d)"""
        del tokens, context
        positions = self.from_place(sincos_positions(grid, latent.shape[-1]).to(latent))  # (n, width)
        return self.out(self.from_latent(latent)[:, None, None] + positions[blocks])


class LinearPredictor(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.from_latent, self.from_place = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)

    def forward(self, latent: Tensor, tokens: Tensor, context: Tensor, blocks: Tensor, grid: Grid) -> Tensor:
        """(b, d), (b, blocks, m) → (b, blocks, m, d)"""
        del tokens, context
        positions = self.from_place(sincos_positions(grid, latent.shape[-1]).to(latent))  # (n, d)
        return self.from_latent(latent)[:, None, None] + positions[blocks]
