"""Objectives on pairs and windows, one file each. An objective is one `nn.Module` that owns everything it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.objectives.covariance_whitening import CovarianceWhitening
    from jepatlas.objectives.exact_whitening import ExactWhitening
    from jepatlas.objectives.infonce import AnInfoNCE, InfoNCE
    from jepatlas.objectives.lejepa import LeJEPA
    from jepatlas.objectives.objective_configs import (
        AnyShaping,
        Contrastive,
        CovarianceConfig,
        InfoNCEConfig,
        LeJEPAConfig,
        Regressive,
        SIGRegConfig,
        SIGRegShaping,
        VCRegShaping,
        VICRegConfig,
        WhiteningConfig,
        WorldModelConfig,
    )
    from jepatlas.objectives.pair_objective import PairObjective, Parts
    from jepatlas.objectives.sigreg import SIGReg, draw_slices
    from jepatlas.objectives.vicreg import VICReg
    from jepatlas.objectives.world_model import WorldModel, WorldModelParts
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
