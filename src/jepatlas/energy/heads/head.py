"""The base class of energy heads, and the building blocks that heads share.

A head is an energy E(x, y) ≥ 0 on latents of one width. All heads have the same orientation: E(x, y) > 0 where a
coordinate of y is larger than that of x. A head declares what it guarantees by construction. With a floor c > 0 it
returns E(x, y) + c‖x − y‖, which is still a quasimetric and is zero for identical points only.

Coordinates that are infinite with the same sign at both points have difference 0. For an infinite difference a head
returns a constant ∞, so that ∞ · 0 and ∞ / ∞ arise neither in the forward nor in the backward pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from jepatlas.core.errors import InputError, check_count, check_not_negative

__all__ = ["EnergyHead", "MaxMean", "chunk_size", "difference", "euclidean", "scaled", "where_finite"]

TILE_NUMBERS = 2**24  # rows · columns · width of a tile of all pairs: 64 MB in float32 per intermediate result

Norm = Callable[[Tensor], Tensor]


class EnergyHead(nn.Module, ABC):
    """Checks shapes, adds the floor and tiles all pairs. Subclasses implement `energy`."""

    def __init__(
        self, width: int, *, guaranteed_quasimetric: bool, pseudo: bool, symmetric: bool, floor: float = 0.0
    ) -> None:
        super().__init__()
        check_count("width", width)
        check_not_negative("floor", floor)
        self.width = width
        self.floor = floor
        self.guaranteed_quasimetric = guaranteed_quasimetric
        self.symmetric = symmetric
        self.pseudo = pseudo and floor == 0

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(..., width), (..., width) → (...); leading dimensions broadcast."""
        self._check_widths(x, y)
        leading = zip(reversed(x.shape[:-1]), reversed(y.shape[:-1]), strict=False)
        if any(m != n and 1 not in (m, n) for m, n in leading):
            raise InputError(
                f"The leading dimensions of x and y must broadcast, but {_shapes(x, y)} were given. "
                "Use all_pairs(x, y) for the energies of all pairs."
            )
        return self._add_floor(self.energy(x, y), x, y)

    @abstractmethod
    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        """The energy without the floor."""

    def pair_energies(self, x_nd: Tensor, y_md: Tensor) -> Tensor:
        """The energies of all n × m pairs without the floor. Override it where less memory suffices."""
        return self.energy(x_nd[:, None], y_md)

    def all_pairs(self, x_nd: Tensor, y_md: Tensor | None = None, tile: int | None = None) -> Tensor:
        """E(x_i, y_j), (n, m), computed in tiles of `tile` rows and columns; y defaults to x.

        Only the result has n·m entries. With several tiles and gradients, tiles are recomputed in the backward pass.
        """
        y_md = x_nd if y_md is None else y_md
        self._check_widths(x_nd, y_md)
        if x_nd.ndim != 2 or y_md.ndim != 2:
            raise InputError(f"x and y must be two-dimensional in all_pairs, but {_shapes(x_nd, y_md)} were given.")
        side = max(1, math.isqrt(TILE_NUMBERS // self.width)) if tile is None else tile
        if side < 1:
            raise InputError(f"tile must be at least 1, but {tile} was given.")
        tile_energies = self._tile
        several = len(x_nd) > side or len(y_md) > side
        if several and torch.is_grad_enabled():
            tile_energies = partial(checkpoint, self._tile, use_reentrant=False, preserve_rng_state=False)
        rows = [torch.cat([tile_energies(a, b) for b in y_md.split(side)], dim=1) for a in x_nd.split(side)]
        return torch.cat(rows)

    def _tile(self, x: Tensor, y: Tensor) -> Tensor:
        return self._add_floor(self.pair_energies(x, y), x[:, None], y)

    def _add_floor(self, energy: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return energy + self.floor * euclidean(difference(x, y)) if self.floor else energy

    def _check_widths(self, x: Tensor, y: Tensor) -> None:
        if any(point.ndim < 1 or point.shape[-1] != self.width for point in (x, y)):
            raise InputError(f"The last dimension of x and y must be {self.width}, but {_shapes(x, y)} were given.")


def _shapes(x: Tensor, y: Tensor) -> str:
    return f"shapes {tuple(x.shape)} and {tuple(y.shape)}"


def difference(x: Tensor, y: Tensor) -> Tensor:
    """y − x, with 0 for ∞ − ∞."""
    return torch.where((x == y) & x.isinf(), 0.0, y - x)


def where_finite(delta: Tensor, norm: Norm) -> Tensor:
    """The norm over the last dimension, or a constant ∞ if a coordinate is infinite."""
    infinite = delta.isinf().any(-1)
    return torch.where(infinite, math.inf, norm(torch.where(infinite[..., None], 0.0, delta)))


def scaled(delta: Tensor, norm: Norm) -> Tensor:
    """s · norm(delta / s) with s the largest coordinate: the same norm without overflow of squares."""
    size = delta.detach().abs().amax(-1, keepdim=True)
    size = torch.where(size == 0, 1.0, size)
    return size[..., 0] * norm(delta / size)


def euclidean(delta: Tensor) -> Tensor:
    """‖delta‖ over the last dimension: exactly 0 with gradient 0 at 0.

    >>> euclidean(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))
    tensor([5.0000e+30, 0.0000e+00])
    """
    return where_finite(delta, lambda finite: scaled(finite, _root_of_squares))


def _root_of_squares(delta: Tensor) -> Tensor:
    square = delta.square().sum(-1)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())


class MaxMean(nn.Module):
    """α · max_i c_i + (1 − α) · mean_i c_i over the last dimension: a quasimetric if each component c_i is one.

    Libraries differ in which of the two terms α weights; here it is the maximum. A learned α lies in (0, 1).
    """

    def __init__(self, alpha: float = 0.5, learned: bool = True) -> None:
        super().__init__()
        if learned and not 0 < alpha < 1:
            raise InputError(f"alpha must lie strictly between 0 and 1 if it is learned, but {alpha} was given.")
        if not learned and not 0 <= alpha <= 1:
            raise InputError(f"alpha must lie in [0, 1], but {alpha} was given.")
        if learned:
            self.logit = nn.Parameter(torch.tensor(math.log(alpha / (1 - alpha))))
        self.fixed = None if learned else alpha

    @property
    def alpha(self) -> Tensor | float:
        return torch.sigmoid(self.logit) if self.fixed is None else self.fixed

    def forward(self, components: Tensor) -> Tensor:
        """(..., k) → (...); a constant ∞ if a component is infinite, so that α · ∞ has no gradient."""
        infinite = components.detach().amax(-1) == math.inf
        finite = components.masked_fill(infinite[..., None], 0.0)
        energy = self.alpha * finite.max(-1).values + (1 - self.alpha) * finite.mean(-1)
        return energy.masked_fill(infinite, math.inf)


def chunk_size(name: str, width: int, chunks: int) -> int:
    """The number of coordinates per chunk; raises InputError if `width` is not a multiple of `chunks`."""
    if chunks < 1:
        raise InputError(f"chunks must be at least 1 for {name}, but {chunks} was given.")
    if width >= 1 and width % chunks == 0:
        return width // chunks
    larger_width = chunks * math.ceil(max(width, 1) / chunks)
    divisors = [str(number) for number in range(1, width + 1) if width % number == 0]
    alternative = f", or one of these numbers of chunks: {', '.join(divisors)}" if divisors else ""
    raise InputError(
        f"width {width} is not a multiple of chunks {chunks}, which {name} requires. Use a width such as "
        f"{larger_width}{alternative}."
    )
