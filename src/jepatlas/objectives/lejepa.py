"""LeJEPA: invariance of the two views, and latents that follow an isotropic Gaussian.

    convex:    (1 − λ) · invariance + λ · SIGReg
    additive:            invariance + λ · SIGReg
with invariance = mean (h − h̄)², h̄ the mean of the two views.

Reference: "LeJEPA: Provable and Scalable Self-Supervised Learning Without the Heuristics".
"""

from __future__ import annotations

from torch import Tensor, nn

from jepatlas.core.records import Loss
from jepatlas.objectives.objective_configs import LeJEPAConfig
from jepatlas.objectives.pair_objective import PairObjective
from jepatlas.objectives.sigreg import SIGReg

__all__ = ["LeJEPA", "invariance"]


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
