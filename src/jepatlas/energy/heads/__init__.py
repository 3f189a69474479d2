"""Energy heads: energies on latents, one file each, that declare what they guarantee by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.energy_configs import (
        HEADS,
        CosineConfig,
        DeepNormConfig,
        HeadConfig,
        IQEConfig,
        L2Config,
        MRNConfig,
        PQEConfig,
        ReluSumConfig,
        SquaredL2Config,
    )
    from jepatlas.energy.heads.deep_norm import DeepNorm
    from jepatlas.energy.heads.head import EnergyHead
    from jepatlas.energy.heads.iqe import IQE
    from jepatlas.energy.heads.mrn import MRN
    from jepatlas.energy.heads.pqe import PQE
    from jepatlas.energy.heads.relu_sum import ReluSum
    from jepatlas.energy.heads.symmetric_energies import L2, Cosine, SquaredL2
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "HEADS",
    "IQE",
    "L2",
    "MRN",
    "PQE",
    "Cosine",
    "CosineConfig",
    "DeepNorm",
    "DeepNormConfig",
    "EnergyHead",
    "HeadConfig",
    "IQEConfig",
    "L2Config",
    "MRNConfig",
    "PQEConfig",
    "ReluSum",
    "ReluSumConfig",
    "SquaredL2",
    "SquaredL2Config",
]
