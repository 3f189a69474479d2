"""Random rows, and moments computed from their definition."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jepatlas.core.moments import Moments
from jepatlas.core.seeding import torch_generator


def normal(*shape: int, name: str = "x") -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, name))


def assert_moments(moments: Moments, rows: np.ndarray) -> None:
    assert moments.count == len(rows)
    centred = rows - rows.mean(0)
    np.testing.assert_allclose(moments.mean, rows.mean(0), atol=1e-9)
    np.testing.assert_allclose(moments.scatter, centred.T @ centred, atol=1e-7)
