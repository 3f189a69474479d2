"""What is minimised, one file each. An objective is one module that owns everything it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.covariance import CovarianceConfig, CovarianceWhitening
    from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE, InfoNCEConfig
    from jepatlas.objectives.lejepa import LeJEPA, LeJEPAConfig
    from jepatlas.objectives.pairwise import PairObjective, Parts
    from jepatlas.objectives.shaping import AnyShaping, Contrastive, Regressive, SIGRegShaping, VCRegShaping
    from jepatlas.objectives.sigreg import SIGReg, SIGRegConfig, draw_slices
    from jepatlas.objectives.vicreg import VICReg, VICRegConfig
    from jepatlas.objectives.whitening import ExactWhitening, WhiteningConfig
    from jepatlas.objectives.world_model import WorldModel, WorldModelConfig, WorldModelParts
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "AnInfoNCE",
    "AnyShaping",
    "Contrastive",
    "CovarianceConfig",
    "CovarianceWhitening",
    "ExactWhitening",
    "InfoNCE",
    "InfoNCEConfig",
    "LeJEPA",
    "LeJEPAConfig",
    "PairObjective",
    "Parts",
    "Regressive",
    "SIGReg",
    "SIGRegConfig",
    "SIGRegShaping",
    "VCRegShaping",
    "VICReg",
    "VICRegConfig",
    "WhiteningConfig",
    "WorldModel",
    "WorldModelConfig",
    "WorldModelParts",
    "draw_slices",
]
