"""What heads are made of: the difference y − x, its length, and a rule for infinite coordinates.

A coordinate that is infinite in the same way at both points is no difference. A head that meets an infinite difference
is infinite there, and has no gradient: ∞ · 0 and ∞ / ∞ never arise, neither forward nor backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["difference", "euclidean", "scaled", "where_finite"]

Norm = Callable[[Tensor], Tensor]


def difference(x: Tensor, y: Tensor) -> Tensor:
    """y − x, with 0 for ∞ − ∞."""
    return torch.where((x == y) & x.isinf(), 0.0, y - x)


def where_finite(delta: Tensor, norm: Norm) -> Tensor:
    """The norm over the last dimension, and a constant ∞ where a coordinate is infinite."""
    infinite = delta.isinf().any(-1)
    return torch.where(infinite, math.inf, norm(torch.where(infinite[..., None], 0.0, delta)))


def scaled(delta: Tensor, norm: Norm) -> Tensor:
    """s · norm(delta / s), the same for a norm, with s the largest coordinate: 1e30 squared would be infinite."""
    size = delta.detach().abs().amax(-1, keepdim=True)
    size = torch.where(size == 0, 1.0, size)
    return size[..., 0] * norm(delta / size)


def euclidean(delta: Tensor) -> Tensor:
    """‖delta‖, whose gradient is 0 at 0: exactly zero there, with nothing added under the root.

    >>> euclidean(torch.tensor([[3e30, 4e30], [0.0, 0.0]]))
    tensor([5.0000e+30, 0.0000e+00])
    """
    return where_finite(delta, lambda finite: scaled(finite, _root))


def _root(delta: Tensor) -> Tensor:
    square = delta.square().sum(-1)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())
