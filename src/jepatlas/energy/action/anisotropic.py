"""An effort that differs between axes, the same there and back: the length of a Riemannian metric.

L(x, v) = √(vᵀ G(x) v)        with G(x) symmetric and its eigenvalues at least c²
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["Anisotropic"]


@dataclass(frozen=True)
class Anisotropic:
    """The length of a metric tensor G(x); c is the floor."""

    metric: Callable[[Tensor], Tensor]  # (..., d) → (..., d, d)
    floor: float

    @classmethod
    def constant(cls, metric: np.ndarray) -> Self:
        """One G everywhere.

        >>> Anisotropic.constant(np.diag([4.0, 9.0])).floor
        2.0
        """
        matrix = np.asarray(metric, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise InputError(f"A metric must be a symmetric matrix (d, d), but shape {matrix.shape} was given.")
        least = float(np.linalg.eigvalsh(matrix)[0])
        if not least > 0:
            raise InputError(f"A metric must be positive definite, but its least eigenvalue is {least:.4g}.")
        return cls(lambda x: torch.as_tensor(matrix).to(x), least**0.5)

    def __call__(self, x: Tensor, v: Tensor) -> Tensor:
        squares = (v * (self.metric(x) @ v[..., None])[..., 0]).sum(-1)
        still = squares <= 0
        return torch.where(still, 1.0, squares).sqrt() * ~still
