"""Random matrices with known singular values, in float64: the weights of mixings.

They are drawn with numpy, because a torch generator cannot be used inside `torch.vmap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jepatlas.core.lazy import lazy_import

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_import("torch")

__all__ = ["semi_orthogonal", "tensors", "well_conditioned"]


def semi_orthogonal(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Haar-distributed among the matrices with orthonormal columns, or orthonormal rows if rows < columns.

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
    u = semi_orthogonal(size, size, rng)
    v = semi_orthogonal(size, size, rng)
    s = spread ** rng.uniform(-1, 1, size)
    return (u * s) @ v.T, (v / s) @ u.T


def tensors(matrices: tuple[np.ndarray, ...], dtype: torch.dtype, device: torch.device) -> tuple[Tensor, ...]:
    """The matrices as normal tensors, even inside `torch.inference_mode`, so that they can be cached."""
    with torch.inference_mode(False):
        return tuple(torch.tensor(matrix, dtype=dtype, device=device) for matrix in matrices)
