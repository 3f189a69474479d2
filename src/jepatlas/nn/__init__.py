"""Networks from observations to latents, and from latents and actions to the next latents.

Any `nn.Module` with the right widths can stand in their place.
"""

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
from jepatlas.nn.mlp import MLPConfig, mlp
from jepatlas.nn.vit import ViT, ViTConfig

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
    "mlp",
    "pooled_encoder",
]
