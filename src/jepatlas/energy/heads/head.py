"""What every head is: E(x, y) ≥ 0, what it takes to go from x to y, on latents of one width.

One direction for all heads: going where a coordinate is *larger* is what costs, so E(x, y) > 0 where y is above x.
A head declares what holds by construction. With a floor c > 0 it is E(x, y) + c‖x − y‖: still a quasimetric, and zero
for identical points alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from jepatlas.core.errors import InputError
from jepatlas.energy.heads.differences import difference, euclidean
from jepatlas.energy.heads.reduction import check_floor

__all__ = ["EnergyHead"]

TILE_NUMBERS = 2**24  # rows · columns · width of a tile of all pairs: 64 MB in float32 for each intermediate result


class EnergyHead(nn.Module, ABC):
    """Checks shapes, adds the floor, and tiles all pairs; the energy itself is its subclass's."""

    def __init__(
        self, width: int, *, guaranteed_quasimetric: bool, pseudo: bool, symmetric: bool, floor: float = 0.0
    ) -> None:
        super().__init__()
        if width < 1:
            raise InputError(f"An energy needs latents of width >= 1, but {width} was given.")
        check_floor(floor)
        self.width, self.floor = width, floor
        self.guaranteed_quasimetric, self.symmetric = guaranteed_quasimetric, symmetric
        self.pseudo = pseudo and floor == 0

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., width) and (..., width) → (...); leading dimensions are broadcast."""
        self._check_widths(x, y)
        leading = zip(reversed(x.shape[:-1]), reversed(y.shape[:-1]), strict=False)
        if any(m != n and 1 not in (m, n) for m, n in leading):
            raise InputError(
                f"x and y need leading dimensions that broadcast, but {_shapes(x, y)} were given. "
                "For the energies of all pairs call all_pairs(x, y)."
            )
        return self._floored(self.energy(x, y), x, y)

    @abstractmethod
    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        """Without the floor."""

    def pair_energies(self, x_nd: Tensor, y_md: Tensor) -> Tensor:
        """The energies of all n × m pairs, without the floor; for heads that can do this in less room."""
        return self.energy(x_nd[:, None], y_md)

    def all_pairs(self, x_nd: Tensor, y_md: Tensor | None = None, tile: int | None = None) -> Tensor:
        """E(x_i, y_j), (n, m), a tile of rows and columns at a time; y is x where it is left out.

        Nothing but the result grows with n·m. Where there are several tiles and gradients are asked for, each tile is
        computed again in the backward pass.
        """
        y_md = x_nd if y_md is None else y_md
        self._check_widths(x_nd, y_md)
        if x_nd.ndim != 2 or y_md.ndim != 2:
            raise InputError(f"All pairs need two tables of rows, but {_shapes(x_nd, y_md)} were given.")
        side = max(1, math.isqrt(TILE_NUMBERS // self.width)) if tile is None else tile
        if side < 1:
            raise InputError(f"A tile of all pairs needs at least 1 row, but {tile} were asked for.")
        several = len(x_nd) > side or len(y_md) > side
        again = partial(checkpoint, self._tile, use_reentrant=False, preserve_rng_state=False)
        energies = again if several and torch.is_grad_enabled() else self._tile
        rows = [torch.cat([energies(a, b) for b in y_md.split(side)], dim=1) for a in x_nd.split(side)]
        return torch.cat(rows)

    def _tile(self, x: Tensor, y: Tensor) -> Tensor:
        return self._floored(self.pair_energies(x, y), x[:, None], y)

    def _floored(self, energy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return energy + self.floor * euclidean(difference(x, y)) if self.floor else energy

    def _check_widths(self, x: Tensor, y: Tensor) -> None:
        if any(point.ndim < 1 or point.shape[-1] != self.width for point in (x, y)):
            raise InputError(
                f"This energy is for latents of width {self.width}, but {_shapes(x, y)} were given: "
                "the last dimension is the latent."
            )


def _shapes(x: Tensor, y: Tensor) -> str:
    return f"shapes {tuple(x.shape)} and {tuple(y.shape)}"
