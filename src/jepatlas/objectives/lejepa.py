"""LeJEPA: pull the two views together, hold the latents to an isotropic Gaussian.

    convex:    (1 − λ) · invariance + λ · SIGReg
    additive:            invariance + λ · SIGReg
with invariance = mean (h − h̄)², h̄ the mean of the two views.

Reference: "LeJEPA: Provable and Scalable Self-Supervised Learning Without the Heuristics".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from torch import Tensor, nn

from jepatlas.core.config import check_literals
from jepatlas.core.errors import InputError
from jepatlas.core.records import Loss
from jepatlas.objectives.pairwise import PairObjective, Parts
from jepatlas.objectives.sigreg import SIGReg, SIGRegConfig

__all__ = ["LeJEPA", "LeJEPAConfig", "invariance"]


@dataclass(frozen=True)
class LeJEPAConfig:
    kind: ClassVar[str] = "lejepa"

    weight: float = 0.01
    """λ, the weight of SIGReg. 0 is alignment alone, 1 (convex) is SIGReg alone."""
    form: Literal["convex", "additive"] = "convex"
    """(1 − λ)·invariance + λ·SIGReg, or invariance + λ·SIGReg."""
    sigreg: SIGRegConfig = field(default_factory=SIGRegConfig)

    def __post_init__(self) -> None:
        check_literals(self)
        if not 0 <= self.weight < math.inf or (self.form == "convex" and self.weight > 1):
            allowed = "in [0, 1]" if self.form == "convex" else "finite and not negative"
            raise InputError(f"λ must be {allowed} in the {self.form} form, but {self.weight} was given.")

    def build(self, parts: Parts) -> LeJEPA:
        return LeJEPA(parts.encoder, self, parts.projector, parts.seed)


class LeJEPA(PairObjective):
    def __init__(
        self,
        encoder: nn.Module,
        config: LeJEPAConfig | None = None,
        projector: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(encoder, projector)
        self.config = config or LeJEPAConfig()
        self.sigreg = SIGReg(self.config.sigreg, seed)

    def loss(self, h_bd: Tensor, h_next_bd: Tensor, step: int) -> Loss:
        align = invariance(h_bd, h_next_bd)
        gauss = self.sigreg(h_bd, h_next_bd, step)
        weight = self.config.weight
        keep = 1 - weight if self.config.form == "convex" else 1
        floor = self.sigreg.null(h_bd, h_next_bd)
        return Loss(
            keep * align + weight * gauss,
            {"invariance": align.detach(), "sigreg": gauss.detach(), "sigreg_null": floor},
        )


def invariance(h_bd: Tensor, h_next_bd: Tensor) -> Tensor:
    """mean (h − h̄)² over both views: a quarter of the mean squared difference."""
    return (h_bd - h_next_bd).square().mean() / 4
