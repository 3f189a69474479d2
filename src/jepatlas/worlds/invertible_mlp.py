"""An invertible multilayer perceptron, the usual mixing of nonlinear independent component analysis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.random_matrices import tensors, well_conditioned

__all__ = ["InvertibleMLP"]

Layer = tuple[Tensor, ...]  # W and W⁻¹


@dataclass(frozen=True)
class InvertibleMLP:
    """x = W_L σ(W_{L−1} … σ(W_1 z)), σ the leaky ReLU, W_l square with random singular values in [½, 2].

    It does not preserve volume, unlike the spiral, the shears and the additive coupling.
    """

    kind: ClassVar[str] = "invertible-mlp"

    layers: int = 3
    """Number of linear layers; a leaky ReLU stands between each two, so one layer is a linear mixing."""
    slope: float = 0.2
    """Slope of the leaky ReLU for negative values, in (0, 1]; 1 makes the mixing linear."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        check_count("layers", self.layers)
        check_argument(
            "slope", self.slope, 0 < self.slope <= 1, "in (0, 1]: with slope 0 the mixing could not be inverted"
        )

    def observed_dim(self, dim: int) -> int:
        check_count("dim", dim)
        return dim

    def __call__(self, z: Tensor) -> Tensor:
        (first, _), *others = self._layers(z)
        x = z @ first.T
        for weight, _ in others:
            x = leaky_relu(x, self.slope) @ weight.T
        return x

    def inverse(self, x: Tensor) -> Tensor:
        (_, first), *others = self._layers(x)
        for _, inverse in reversed(others):
            x = leaky_relu(x @ inverse.T, 1 / self.slope)
        return x @ first.T

    def _layers(self, z: Tensor) -> list[Layer]:
        self.observed_dim(z.shape[-1])
        return _weights(self.layers, self.seed, z.shape[-1], z.dtype, z.device)


@lru_cache(maxsize=32)
def _weights(layers: int, seed: int, dim: int, dtype: torch.dtype, device: torch.device) -> list[Layer]:
    built: list[Layer] = []
    for index in range(layers):
        layer = well_conditioned(dim, numpy_generator(seed, "worlds/invertible-mlp", index))
        built.append(tensors(layer, dtype, device))
    return built
