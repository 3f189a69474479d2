"""Square patches of images, in row-major order, for vision transformers and decoders."""

from __future__ import annotations

import torch
from torch import Tensor

from jepatlas.core.errors import InputError

__all__ = ["patch_grid", "patches", "take_rows", "unit_pixels"]


def unit_pixels(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes 0 … 255 scaled to 0 … 1; other types are converted unscaled."""
    return x.to(dtype) / 255 if x.dtype == torch.uint8 else x.to(dtype)


def patch_grid(size: tuple[int, int], patch: int) -> tuple[int, int]:
    """The number of patches from top to bottom and from left to right.

    >>> patch_grid((224, 224), 16)
    (14, 14)
    """
    height, width = size
    if height < patch or width < patch or height % patch or width % patch:
        raise InputError(
            f"Images of {height} × {width} pixels cannot be divided into patches of {patch} × {patch}. "
            f"Use image sizes that are multiples of {patch}, or another patch size."
        )
    return height // patch, width // patch


def patches(x: Tensor, patch: int) -> Tensor:
    """(b, 3, height, width) → (b, n, 3 · patch²)"""
    b, channels, *size = x.shape
    rows, columns = patch_grid((size[0], size[1]), patch)
    cut = x.reshape(b, channels, rows, patch, columns, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, channels * patch**2)


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """Selected patches of each image: (b, n, d) and indices (b, k) → (b, k, d)."""
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
