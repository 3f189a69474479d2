"""Mean and covariance of latents: streamed moments that merge, and a differentiable covariance of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jepatlas.core.distributed import gather_values, mean_over_processes, world_size

__all__ = ["Moments", "batch_covariance"]


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter Σ(x − mean)(x − mean)ᵀ of rows; moments of parts merge to those of the whole.

    >>> x = torch.randn(100, 3, dtype=torch.float64)
    >>> both = Moments.of(x[:30]).merge(Moments.of(x[30:]))
    >>> torch.allclose(both.covariance, x.T.cov())
    True
    """

    count: int
    mean: Tensor  # (d,) float64
    scatter: Tensor  # (d, d) float64

    @classmethod
    def of(cls, rows: Tensor) -> Moments:
        rows = rows.detach().double()
        mean = rows.sum(0) / max(len(rows), 1)  # an empty part is allowed and changes nothing
        centred = rows - mean
        return cls(len(rows), mean, centred.T @ centred)

    def merge(self, other: Moments) -> Moments:
        count = self.count + other.count
        if count == 0:
            return self
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter + torch.outer(shift, shift) * (self.count * other.count / count)
        return Moments(count, self.mean + shift * (other.count / count), scatter)

    def over_processes(self) -> Moments:
        """The moments of the rows of all processes, bitwise equal on each of them."""
        if world_size() == 1:
            return self
        merged, *others = gather_values(Moments(self.count, self.mean.cpu(), self.scatter.cpu()))
        for part in others:
            merged = merged.merge(part)
        return merged

    @property
    def covariance(self) -> Tensor:
        return self.scatter / (self.count - 1)


def batch_covariance(h_bd: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and unbiased covariance of the rows of all processes, differentiable. Two passes keep float32 accurate."""
    mean = mean_over_processes(h_bd.mean(0))
    centred = h_bd - mean
    count = len(h_bd) * world_size()
    return mean, mean_over_processes(centred.T @ centred / len(h_bd)) * (count / (count - 1))
