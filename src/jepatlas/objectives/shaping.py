"""What keeps the latents of a world model apart, or gives them a shape: terms on the latents of windows, (b, t, d).

sigreg:       every time's latents against N(0, I), by SIGReg
vcreg:        a hinge on standard deviations, and decorrelation, as in VICReg
contrastive:  the next latent of a row is to be told from those of all other rows, by InfoNCE
regressive:   ‖h_s − h_t‖ = |s − t| within a window: distances are the time that passed
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from jepatlas.core.distributed import gather_rows
from jepatlas.core.errors import InputError
from jepatlas.core.seeding import torch_generator
from jepatlas.core.stats import batch_covariance, epps_pulley
from jepatlas.objectives.infonce import contrast, gaussian_similarity
from jepatlas.objectives.sigreg import SIGRegConfig, draw_slices
from jepatlas.objectives.vicreg import decorrelation, variance_hinge

__all__ = ["AnyShaping", "Contrastive", "Regressive", "SIGRegShaping", "VCRegShaping"]


@dataclass(frozen=True)
class SIGRegShaping:
    kind: ClassVar[str] = "sigreg"

    weight: float = 0.05
    """Of this term beside the prediction error."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        _check("weight", self.weight)
        if self.sigreg.views != "each":
            raise InputError("The times of a window are held against the Gaussian one by one: leave views at 'each'.")

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        c = self.sigreg
        generator = torch_generator(seed, "slices", step if c.fresh else 0)
        slices_ds = draw_slices(h_btd.shape[-1], c.slices, generator, c.design).to(h_btd)
        # Times of one window are alike, and the statistic counts rows as independent: so each time for itself.
        return epps_pulley((h_btd @ slices_ds).flatten(1), c.knots, c.limit).mean()


@dataclass(frozen=True)
class VCRegShaping:
    kind: ClassVar[str] = "vcreg"

    weight: float = 1.0
    """Of the hinge on standard deviations."""
    covariance: float = 0.04
    """Of the squared covariances, beside the hinge."""
    target: float = 1.0
    """Standard deviation below which the hinge acts."""

    def __post_init__(self) -> None:
        for name in ("weight", "covariance", "target"):
            _check(name, getattr(self, name))

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        _, cov_dd = batch_covariance(h_btd.flatten(0, 1))
        return variance_hinge(cov_dd, self.target, 1e-4) + self.covariance * decorrelation(cov_dd)


@dataclass(frozen=True)
class Contrastive:
    kind: ClassVar[str] = "contrastive"

    weight: float = 1.0
    """Of this term beside the prediction error."""
    width: float = 1.0
    """Of the Gaussian kernel that compares two latents."""

    def __post_init__(self) -> None:
        _check("weight", self.weight)
        _check("width", self.width)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        """The first two times of a window, as two views of it."""
        first, second = (gather_rows(h_btd[:, time]) for time in (0, 1))
        return contrast(gaussian_similarity(first, second, first.new_tensor(self.width)))


@dataclass(frozen=True)
class Regressive:
    kind: ClassVar[str] = "regressive"

    weight: float = 1.0
    """Of this term beside the prediction error."""

    def __post_init__(self) -> None:
        _check("weight", self.weight)

    def term(self, h_btd: Tensor, step: int, seed: int) -> Tensor:
        first, later = torch.triu_indices(h_btd.shape[1], h_btd.shape[1], offset=1, device=h_btd.device)
        # Under the root, so that equal latents, with which training may begin, have a gradient.
        apart = (h_btd[:, first] - h_btd[:, later]).square().sum(-1).add(1e-6).sqrt()
        return (apart - (later - first)).square().mean()


AnyShaping = SIGRegShaping | VCRegShaping | Contrastive | Regressive


def _check(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"{name} must be finite and not negative, but {value} was given.")
