"""Terms that keep the latents of a world model from collapsing or give them a shape.

The latents of windows have the shape (b, t, d).

sigreg:       SIGReg of the latents at each time
vcreg:        a hinge on standard deviations, and decorrelation, as in VICReg
contrastive:  InfoNCE between the first two times of the window
regressive:   ‖h_s − h_t‖ = |s − t| within a window: distances equal elapsed time
"""

from __future__ import annotations

import torch
from torch import Tensor

from jepatlas.core.distributed import gather_rows
from jepatlas.core.moments import batch_covariance
from jepatlas.core.normality import epps_pulley
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives.infonce import contrast, gaussian_similarity
from jepatlas.objectives.objective_configs import SIGRegConfig
from jepatlas.objectives.sigreg import draw_slices
from jepatlas.objectives.vicreg import decorrelation, variance_hinge

__all__ = ["contrastive_shaping", "regressive_shaping", "sigreg_shaping", "vcreg_shaping"]


def sigreg_shaping(h_btd: Tensor, config: SIGRegConfig, step: int, seed: int) -> Tensor:
    generator = torch_generator(seed, "slices", step if config.fresh else 0)
    slices_ds = draw_slices(h_btd.shape[-1], config.slices, generator, config.design).to(h_btd)
    # Per time step, because the statistic assumes independent rows and the times of a window are correlated.
    return epps_pulley((h_btd @ slices_ds).flatten(1), config.knots, config.limit).mean()


def vcreg_shaping(h_btd: Tensor, target: float, covariance: float) -> Tensor:
    _, cov_dd = batch_covariance(h_btd.flatten(0, 1))
    return variance_hinge(cov_dd, target, 1e-4) + covariance * decorrelation(cov_dd)


def contrastive_shaping(h_btd: Tensor, width: float) -> Tensor:
    """The first two times of a window are the two views."""
    first = gather_rows(h_btd[:, 0])
    second = gather_rows(h_btd[:, 1])
    return contrast(gaussian_similarity(first, second, first.new_tensor(width)))


def regressive_shaping(h_btd: Tensor) -> Tensor:
    first, later = torch.triu_indices(h_btd.shape[1], h_btd.shape[1], offset=1, device=h_btd.device)
    # The constant under the root gives equal latents a gradient.
    distance = (h_btd[:, first] - h_btd[:, later]).square().sum(-1).add(1e-6).sqrt()
    return (distance - (later - first)).square().mean()
