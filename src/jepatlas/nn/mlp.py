"""Multi-layer perceptron with `depth` hidden layers of equal width and GELU activations."""

from __future__ import annotations

import itertools

from torch import nn

__all__ = ["mlp"]


def mlp(in_dim: int, out_dim: int, width: int = 128, depth: int = 4) -> nn.Sequential:
    """
    >>> [layer.out_features for layer in mlp(2, 3, width=8, depth=2) if hasattr(layer, "out_features")]
    [8, 8, 3]
    """
    widths = [in_dim] + [width] * depth
    hidden = [layer for a, b in itertools.pairwise(widths) for layer in (nn.Linear(a, b), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], out_dim))
