"""Coupling layers (NICE, RealNVP): one half of the state is shifted by a function of the other, then they swap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

from jepatlas.core.errors import check_argument, check_count
from jepatlas.core.lazy import lazy_import
from jepatlas.core.seeding import numpy_generator
from jepatlas.worlds.random_matrices import semi_orthogonal, tensors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    Layer = tuple[Tensor, ...]  # W and V
else:
    torch = lazy_import("torch")

__all__ = ["Coupling"]


GAIN = 2.0  # singular values of W: tanh must saturate for typical states, or the layers would be nearly linear
LOG_SCALE = 0.5  # the affine form scales by factors in [e^−½, e^½]


@dataclass(frozen=True)
class Coupling:
    """Layers of  b ← b + tanh(W a)  ("additive"), or  b ← b ⊙ exp(½ tanh(V a)) + tanh(W a)  ("affine").

    W is twice a random (semi-)orthogonal matrix, V a random (semi-)orthogonal one; a and b are the halves of the state.
    The additive form preserves volume, so an encoder of the same form cannot collapse.
    """

    kind: ClassVar[str] = "coupling"

    layers: int = 8
    """Number of layers; two layers change every coordinate once."""
    form: Literal["additive", "affine"] = "additive"
    """Whether a half is only shifted (volume preserving), or also scaled."""
    seed: int = 0
    """Seed of the random weights."""

    def __post_init__(self) -> None:
        check_count("layers", self.layers)
        check_argument("form", self.form, self.form in ("additive", "affine"), "'additive' or 'affine'")

    def observed_dim(self, dim: int) -> int:
        check_argument("dim", dim, dim >= 2, "at least 2 for the mixing 'coupling', which splits states into halves")
        return dim

    def __call__(self, z: Tensor) -> Tensor:
        layers = self._layers(z)
        fixed, changed = z.tensor_split([z.shape[-1] // 2], -1)
        for layer in layers:
            shifted = changed * self._scale(fixed, layer) + torch.tanh(fixed @ layer[0].T)
            fixed, changed = shifted, fixed
        return torch.cat(self._in_order(fixed, changed), -1)

    def inverse(self, x: Tensor) -> Tensor:
        layers = self._layers(x)
        first, second = x.tensor_split([x.shape[-1] // 2], -1)
        fixed, changed = self._in_order(first, second)
        for layer in reversed(layers):
            shifted = (fixed - torch.tanh(changed @ layer[0].T)) / self._scale(changed, layer)
            fixed, changed = changed, shifted
        return torch.cat([fixed, changed], -1)

    def _scale(self, a: Tensor, layer: Layer) -> Tensor | float:
        if self.form == "additive":
            return 1.0
        return (LOG_SCALE * torch.tanh(a @ layer[1].T)).exp()

    def _in_order(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        # Each layer swaps the halves, so an odd number of layers leaves them swapped.
        return (second, first) if self.layers % 2 else (first, second)

    def _layers(self, z: Tensor) -> list[Layer]:
        self.observed_dim(z.shape[-1])
        return coupling_weights(self.layers, self.seed, z.shape[-1], z.dtype, z.device)


@lru_cache(maxsize=32)
def coupling_weights(layers: int, seed: int, dim: int, dtype: torch.dtype, device: torch.device) -> list[Layer]:
    """The matrices W and V of each layer."""
    halves = (dim // 2, dim - dim // 2)
    weights: list[Layer] = []
    for index in range(layers):
        rng = numpy_generator(seed, "worlds/coupling", index)
        fixed, changed = halves[index % 2], halves[1 - index % 2]
        shift = GAIN * semi_orthogonal(changed, fixed, rng)
        log_scale = semi_orthogonal(changed, fixed, rng)
        weights.append(tensors((shift, log_scale), dtype, device))
    return weights
