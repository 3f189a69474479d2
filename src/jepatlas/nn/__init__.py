"""Networks from observations to latents, and from latents and actions to the next latents.

Any `nn.Module` with the right widths can stand in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.nn.conv import ConvConfig, ConvEncoder
    from jepatlas.nn.coupling import CouplingConfig, CouplingEncoder
    from jepatlas.nn.dynamics import (
        AnyDynamics,
        GRUDynamics,
        GRUDynamicsConfig,
        LinearDynamics,
        LinearDynamicsConfig,
        ResidualDynamics,
        ResidualDynamicsConfig,
    )
    from jepatlas.nn.foreign import PooledEncoder, pooled_encoder
    from jepatlas.nn.mlp import MLPConfig
    from jepatlas.nn.vit import ViT, ViTConfig
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
