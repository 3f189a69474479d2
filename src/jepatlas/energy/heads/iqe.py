"""IQE, the interval quasimetric embedding.

The latent is cut into chunks of k coordinates. A chunk's component is the length of a union of intervals,

    c_i(u, v) = | ⋃_j [u_ij, max(u_ij, v_ij)] |,    E = α · max_i c_i + (1 − α) · mean_i c_i.

What is covered on the way from u over w to v covers all that is covered directly: so it is a quasimetric. It is zero
for any v ≤ u: a pseudo-quasimetric, unless it has a floor. An infinite coordinate is as in `jepatlas.core.intervals`:
going up to +∞ or away from −∞ is infinitely far, coming down costs nothing.

Reference: "Improved Representation of Asymmetrical Distances with Interval Quasimetric Embeddings".
"""

from __future__ import annotations

from typing import final

from torch import Tensor

from jepatlas.core.intervals import union_length, union_length_of_pairs
from jepatlas.energy.energy_configs import IQEConfig
from jepatlas.energy.heads.head import EnergyHead
from jepatlas.energy.heads.reduction import MaxMean, check_chunks

__all__ = ["IQE"]


@final
class IQE(EnergyHead):
    def __init__(self, width: int, config: IQEConfig | None = None) -> None:
        config = config or IQEConfig()
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False, floor=config.floor)
        self.chunks = (config.chunks, check_chunks("IQE", width, config.chunks))
        self.reduce = MaxMean(config.alpha, config.learn_alpha)

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.reduce(union_length(x.unflatten(-1, self.chunks), y.unflatten(-1, self.chunks)))

    def pair_energies(self, x_nd: Tensor, y_md: Tensor) -> Tensor:
        return self.reduce(union_length_of_pairs(x_nd.unflatten(-1, self.chunks), y_md.unflatten(-1, self.chunks)))
