"""Simple energies from their formulas, with and without quasimetric axioms, for tensors and arrays."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


def points(rows: int = 60, width: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, width))


def l2(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sqrt(((x - y) ** 2).sum(-1))


def squared_l2(x: Tensor, y: Tensor) -> Tensor:
    return ((x - y) ** 2).sum(-1)


def mrn_without_root(x: Tensor, y: Tensor) -> Tensor:
    """mean (x − y)² + max relu(y − x): the metric residual network without its square root."""
    return ((x - y) ** 2).mean(-1) + torch.relu(y - x).amax(-1)


def mrn(x: Tensor, y: Tensor) -> Tensor:
    squares = ((x - y) ** 2).mean(-1)
    root = torch.where(squares > 0, squares, 1.0).sqrt() * (squares > 0)
    return root + torch.relu(y - x).amax(-1)


def iqe(x: Tensor, y: Tensor, size: int = 2) -> Tensor:
    """Length of the union of [x_i, max(x_i, y_i)] in chunks of the given size, summed over chunks."""
    left, right = (part.unflatten(-1, (-1, size)) for part in (x, torch.maximum(x, y)))
    left, order = left.sort(-1)
    right = right.gather(-1, order).cummax(-1).values
    before = torch.cat([left[..., :1], right[..., :-1]], -1)
    return torch.relu(right - torch.maximum(left, before)).sum((-1, -2))


class PredictionError(nn.Module):
    """The prediction error ‖p(f(x)) − f(y)‖² of a JEPA as an energy."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, 8))
        self.predictor = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.predictor(self.encoder(x)) - self.encoder(y)).square().sum(-1)


def trained_prediction_error(width: int = 4, steps: int = 200) -> PredictionError:
    """A predictor trained on small random steps, with a frozen encoder."""
    error, generator = PredictionError(width), torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(error.predictor.parameters(), 3e-3)
    for _ in range(steps):
        x = torch.randn(256, width, generator=generator)
        loss = error(x, x + 0.1 * torch.randn(256, width, generator=generator)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return error


def one_way_line(size: int = 6) -> np.ndarray:
    """Unit steps to the right only: E(i, j) = j − i, +∞ where j < i."""
    gap = np.subtract.outer(-np.arange(size), -np.arange(size)).astype(float)
    return np.where(gap >= 0, gap, np.inf)
