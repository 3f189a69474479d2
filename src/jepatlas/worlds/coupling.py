"""Coupling layers (NICE, RealNVP): half of the state moves by a function of the other half, then they change roles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import torch
from torch import Tensor

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.random_matrices import semi_orthogonal, tensors

__all__ = ["Coupling"]

Layer = tuple[Tensor, ...]  # W and V

GAIN = 2.0  # singular values of W: tanh must saturate for typical states, or the layers would be nearly linear
LOG_SCALE = 0.5  # the affine form stretches by factors in [e^−½, e^½]


@dataclass(frozen=True)
class Coupling:
    """Layers of  b ← b + tanh(W a)  ("additive"), or  b ← b ⊙ exp(½ tanh(V a)) + tanh(W a)  ("affine").

    W is twice a random (semi-)orthogonal matrix, V a random (semi-)orthogonal one; a and b are the halves of the state.
    The additive form preserves volume: an encoder of the same form cannot collapse, whatever its loss.
    """

    kind: ClassVar[str] = "coupling"

    layers: int = 8
    """Number of layers; two of them move every coordinate once."""
    form: Literal["additive", "affine"] = "additive"
    """Whether a half is only shifted (volume preserving) or also scaled."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        check_count("layers", self.layers)
        check_argument("form", self.form, self.form in ("additive", "affine"), "'additive' or 'affine'")

    def observed_dim(self, dim: int) -> int:
        check_argument("dim", dim, dim >= 2, "at least 2 for the mixing 'coupling', which splits a state into halves")
        return dim

    def __call__(self, z: Tensor) -> Tensor:
        layers = self._layers(z)
        still, moving = z.tensor_split([z.shape[-1] // 2], -1)
        for layer in layers:
            still, moving = self._push(moving, still, layer), still
        return torch.cat(self._in_order(still, moving), -1)

    def inverse(self, x: Tensor) -> Tensor:
        layers = self._layers(x)
        width = x.shape[-1] // 2
        still, moving = self._in_order(*x.tensor_split([width], -1))
        for layer in reversed(layers):
            still, moving = moving, self._pull(still, moving, layer)
        return torch.cat([still, moving], -1)

    def _push(self, b: Tensor, a: Tensor, layer: Layer) -> Tensor:
        return b * self._stretch(a, layer) + torch.tanh(a @ layer[0].T)

    def _pull(self, b: Tensor, a: Tensor, layer: Layer) -> Tensor:
        return (b - torch.tanh(a @ layer[0].T)) / self._stretch(a, layer)

    def _stretch(self, a: Tensor, layer: Layer) -> Tensor | float:
        return 1.0 if self.form == "additive" else (LOG_SCALE * torch.tanh(a @ layer[1].T)).exp()

    def _in_order(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        # Each layer swaps the halves, so an odd number of them leaves the halves swapped.
        return (second, first) if self.layers % 2 else (first, second)

    def _layers(self, z: Tensor) -> list[Layer]:
        self.observed_dim(z.shape[-1])
        return _weights(self.layers, self.seed, z.shape[-1], z.dtype, z.device)


@lru_cache(maxsize=32)
def _weights(layers: int, seed: int, dim: int, dtype: torch.dtype, device: torch.device) -> list[Layer]:
    halves = dim // 2, dim - dim // 2
    built: list[Layer] = []
    for index in range(layers):
        rng = numpy_generator(seed, "worlds/coupling", index)
        still, moving = halves[index % 2], halves[1 - index % 2]
        shift = GAIN * semi_orthogonal(moving, still, rng)
        stretch = semi_orthogonal(moving, still, rng)
        built.append(tensors((shift, stretch), dtype, device))
    return built
