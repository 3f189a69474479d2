"""The multi-layer perceptron: `depth` hidden layers of one width, GELU between them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from jepatlas.core.errors import InputError

__all__ = ["MLPConfig", "mlp"]


@dataclass(frozen=True)
class MLPConfig:
    kind: ClassVar[str] = "mlp"

    width: int = 128
    """Units in each hidden layer."""
    depth: int = 4
    """Hidden layers."""

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 0:
            raise InputError(f"An MLP needs width >= 1 and depth >= 0, but {self.width} and {self.depth} were given.")

    def build(self, in_dim: int, out_dim: int) -> nn.Module:
        return mlp(in_dim, out_dim, self.width, self.depth)


def mlp(in_dim: int, out_dim: int, width: int = 128, depth: int = 4) -> nn.Sequential:
    """
    >>> [layer.out_features for layer in mlp(2, 3, width=8, depth=2) if hasattr(layer, "out_features")]
    [8, 8, 3]
    """
    widths = [in_dim] + [width] * depth
    hidden = [layer for a, b in itertools.pairwise(widths) for layer in (nn.Linear(a, b), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], out_dim))
