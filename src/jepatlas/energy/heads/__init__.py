"""Heads: energies on latents, one file each, that declare what holds for them by construction."""

from jepatlas.energy.heads.controls import L2, Cosine, CosineConfig, L2Config, SquaredL2, SquaredL2Config
from jepatlas.energy.heads.deep_norm import DeepNorm, DeepNormConfig
from jepatlas.energy.heads.head import EnergyHead
from jepatlas.energy.heads.iqe import IQE, IQEConfig
from jepatlas.energy.heads.mrn import MRN, MRNConfig
from jepatlas.energy.heads.pqe import PQE, PQEConfig
from jepatlas.energy.heads.relu_sum import ReluSum, ReluSumConfig

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

HeadConfig = (
    IQEConfig | MRNConfig | PQEConfig | ReluSumConfig | DeepNormConfig | L2Config | SquaredL2Config | CosineConfig
)
"""The choice of a recipe's head."""

HEADS: dict[str, type[HeadConfig]] = {
    config.kind: config
    for config in (
        IQEConfig,
        MRNConfig,
        PQEConfig,
        ReluSumConfig,
        DeepNormConfig,
        L2Config,
        SquaredL2Config,
        CosineConfig,
    )
}
"""Settings by kind; each builds its head for a width."""
