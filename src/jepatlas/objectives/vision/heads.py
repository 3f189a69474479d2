"""Projection heads, which are discarded after training: perceptrons with batch normalisation."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from jepatlas.core.distributed import mean_over_processes
from jepatlas.nn.ema import ema_update
from jepatlas.objectives.pair_objective import at_least_float32

__all__ = ["JointBatchNorm", "expander", "perceptron", "projector"]


def perceptron(*widths: int, last_norm: bool = False) -> nn.Sequential:
    """Linear layers between `widths` with batch normalisation and ReLU after each but the last.

    With `last_norm` the output is normalised as well, without scale and shift.
    """
    layers: list[nn.Module] = []
    for in_dim, out_dim in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(in_dim, out_dim, bias=False), JointBatchNorm(out_dim), nn.ReLU(inplace=True)]
    layers.append(nn.Linear(*widths[-2:], bias=not last_norm))
    if last_norm:
        layers.append(JointBatchNorm(widths[-1], affine=False))
    return nn.Sequential(*layers)


def projector(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """A perceptron on latents of width `dim`; the identity if no widths are given."""
    return perceptron(dim, *widths) if widths else nn.Identity()


def expander(dim: int, widths: tuple[int, ...]) -> nn.Module:
    """A projector without bias in the last layer, for losses that are invariant to shifts of the embedding."""
    head = perceptron(dim, *widths)
    head[-1] = nn.Linear((dim, *widths)[-2], widths[-1], bias=False)
    return head


class JointBatchNorm(nn.Module):
    """Batch normalisation with the statistics of the joint batch of all processes, on any device.

    torch's `SyncBatchNorm` needs GPUs. With per-process statistics the loss would depend on the number of processes.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int, *, affine: bool = True, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.scale = nn.Parameter(torch.ones(width)) if affine else None
        self.shift = nn.Parameter(torch.zeros(width)) if affine else None
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:  # (b, d) → (b, d)
        x = at_least_float32(x)  # variances cancel in half precision
        mean, variance = self._batch_statistics(x) if self.training else (self.running_mean, self.running_variance)
        normal = (x - mean) * torch.rsqrt(variance + self.epsilon)
        return normal if self.scale is None or self.shift is None else normal * self.scale + self.shift

    def _batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean = mean_over_processes(x.mean(0))
        variance = mean_over_processes((x - mean).square().mean(0))
        ema_update(self.running_mean, mean, self.momentum)
        ema_update(self.running_variance, variance, self.momentum)
        return mean, variance
