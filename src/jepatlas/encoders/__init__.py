"""Networks from observations to latents. Any `nn.Module` with the right widths can stand in their place."""

from jepatlas.encoders.coupling import CouplingConfig, CouplingEncoder
from jepatlas.encoders.mlp import MLPConfig, mlp

__all__ = ["CouplingConfig", "CouplingEncoder", "MLPConfig", "mlp"]
