"""An invertible multilayer perceptron, the usual mixing of nonlinear independent component analysis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.random_matrices import tensors, well_conditioned

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Layer = tuple[Tensor, ...]  # W and W⁻¹
else:
    torch = lazy_import("torch")

__all__ = ["InvertibleMLP"]


@dataclass(frozen=True)
class InvertibleMLP:
    """x = W_L σ(W_{L−1} … σ(W_1 z)), σ the leaky ReLU, W_l square with random singular values in [½, 2].

    Unlike the spiral, the shears and the additive coupling, it does not preserve volume.
    """

    kind: ClassVar[str] = "invertible-mlp"

    layers: int = 3
    """Number of linear layers, with a leaky ReLU between them; one layer is a linear mixing."""
    slope: float = 0.2
    """Slope of the leaky ReLU for negative values, in (0, 1]; 1 makes the mixing linear."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        check_count("layers", self.layers)
        check_argument("slope", self.slope, 0 < self.slope <= 1, "in (0, 1] (slope 0 is not invertible)")

    def observed_dim(self, dim: int) -> int:
        check_count("dim", dim)
        return dim

    def __call__(self, z: Tensor) -> Tensor:
        (first, _), *others = self._layers(z)
        x = z @ first.T
        for weight, _ in others:
            x = torch.nn.functional.leaky_relu(x, self.slope) @ weight.T
        return x

    def inverse(self, x: Tensor) -> Tensor:
        (_, first), *others = self._layers(x)
        for _, inverse in reversed(others):
            x = torch.nn.functional.leaky_relu(x @ inverse.T, 1 / self.slope)
        return x @ first.T

    def _layers(self, z: Tensor) -> list[Layer]:
        self.observed_dim(z.shape[-1])
        return _weights(self.layers, self.seed, z.shape[-1], z.dtype, z.device)


@lru_cache(maxsize=32)
def _weights(layers: int, seed: int, dim: int, dtype: torch.dtype, device: torch.device) -> list[Layer]:
    weights: list[Layer] = []
    for index in range(layers):
        layer = well_conditioned(dim, numpy_generator(seed, "worlds/invertible-mlp", index))
        weights.append(tensors(layer, dtype, device))
    return weights
