"""Networks from observations to latents, and from latents and actions to the next latents.

Any `nn.Module` with the right widths can stand in their place.
"""

from jepatlas.encoders.conv import ConvConfig, ConvEncoder
from jepatlas.encoders.coupling import CouplingConfig, CouplingEncoder
from jepatlas.encoders.dynamics import (
    AnyDynamics,
    GRUDynamics,
    GRUDynamicsConfig,
    LinearDynamics,
    LinearDynamicsConfig,
    ResidualDynamics,
    ResidualDynamicsConfig,
)
from jepatlas.encoders.foreign import PooledEncoder, pooled_encoder
from jepatlas.encoders.mlp import MLPConfig, mlp
from jepatlas.encoders.vit import ViT, ViTConfig

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
