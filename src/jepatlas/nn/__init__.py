"""Encoders and latent dynamics. Any `nn.Module` with the same input and output shapes can replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.nn.conv import ConvEncoder
    from jepatlas.nn.coupling import CouplingEncoder
    from jepatlas.nn.dynamics import GRUDynamics, LinearDynamics, ResidualDynamics
    from jepatlas.nn.network_configs import (
        AnyDynamics,
        ConvConfig,
        CouplingConfig,
        GRUDynamicsConfig,
        LinearDynamicsConfig,
        MLPConfig,
        ResidualDynamicsConfig,
        ViTConfig,
    )
    from jepatlas.nn.third_party import PooledEncoder, pooled_encoder
    from jepatlas.nn.vit import ViT
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "AnyDynamics",
    "ConvConfig",
    "ConvEncoder",
    "CouplingConfig",
    "CouplingEncoder",
    "GRUDynamics",
    "GRUDynamicsConfig",
    "LinearDynamics",
    "LinearDynamicsConfig",
    "MLPConfig",
    "PooledEncoder",
    "ResidualDynamics",
    "ResidualDynamicsConfig",
    "ViT",
    "ViTConfig",
    "pooled_encoder",
]
