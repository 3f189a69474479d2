"""Random matrices with known singular values, in float64: the weights of mixings.

They are made with numpy, because a torch generator must not be drawn from under `torch.vmap`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["semi_orthogonal", "tensors", "well_conditioned"]


def semi_orthogonal(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform (Haar) among the matrices with orthonormal columns; with orthonormal rows where it is wide.

    >>> q = semi_orthogonal(5, 3, np.random.default_rng(0))
    >>> np.allclose(q.T @ q, np.eye(3))
    True
    """
    gaussian = rng.standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(gaussian)
    # Without the signs of R's diagonal the distribution would depend on the QR algorithm.
    q = q * np.sign(np.diagonal(r))
    return q if rows >= columns else q.T


def well_conditioned(size: int, rng: np.random.Generator, spread: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """A square matrix U diag(s) Vᵀ and its inverse; log s is uniform between ±log(spread)."""
    u, v = semi_orthogonal(size, size, rng), semi_orthogonal(size, size, rng)
    s = spread ** rng.uniform(-1, 1, size)
    return (u * s) @ v.T, (v / s) @ u.T


@torch.inference_mode(False)
def tensors(matrices: tuple[np.ndarray, ...], dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
    """Weights to keep: also when first asked for under `torch.inference_mode` they can be trained through later."""
    return tuple(torch.tensor(matrix, dtype=dtype, device=device) for matrix in matrices)
