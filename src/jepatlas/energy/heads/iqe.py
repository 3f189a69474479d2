"""IQE, the interval quasimetric embedding.

The latent is split into chunks of k coordinates. A chunk's component is the length of a union of intervals,

    c_i(u, v) = | ⋃_j [u_ij, max(u_ij, v_ij)] |,    E = α · max_i c_i + (1 − α) · mean_i c_i.

The union from u over w to v contains the union from u to v, which gives the triangle inequality. E is zero for all
v ≤ u, so it is a pseudo-quasimetric unless it has a floor. Infinite coordinates are treated as in
`jepatlas.core.interval_union`: E = ∞ for increases to +∞ or from −∞, and decreases cost nothing.

Reference: "Improved Representation of Asymmetrical Distances with Interval Quasimetric Embeddings".
"""

from __future__ import annotations

from typing import final

from torch import Tensor

from jepatlas.core.interval_union import union_length, union_length_of_pairs
from jepatlas.energy.energy_configs import IQEConfig
from jepatlas.energy.heads.head import EnergyHead, MaxMean, chunk_size

__all__ = ["IQE"]


@final
class IQE(EnergyHead):
    """The interval quasimetric embedding."""

    def __init__(self, width: int, config: IQEConfig | None = None) -> None:
        config = config or IQEConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=config.floor)
        self.chunks = (config.chunks, chunk_size("IQE", width, config.chunks))
        self.reduce = MaxMean(config.alpha, config.learn_alpha)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.reduce(union_length(x.unflatten(-1, self.chunks), y.unflatten(-1, self.chunks)))

    def pair_energies(self, x_nd: Tensor, y_md: Tensor) -> Tensor:
        return self.reduce(union_length_of_pairs(x_nd.unflatten(-1, self.chunks), y_md.unflatten(-1, self.chunks)))
