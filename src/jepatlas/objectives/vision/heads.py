"""Heads on an encoder's output, which are thrown away after training: perceptrons with batch normalisation."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from jepatlas.core.distributed import mean_over_processes
from jepatlas.nn.ema import ema_update
from jepatlas.objectives.pairwise import at_least_float32

__all__ = ["JointBatchNorm", "perceptron"]


def perceptron(*widths: int, last_norm: bool = False) -> nn.Sequential:
    """Linear layers between `widths`, each followed by batch normalisation and ReLU; the last one by neither.

    With `last_norm` the last layer, too, is normalised, without a scale and shift of its own.
    """
    layers: list[nn.Module] = []
    for given, made in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(given, made, bias=False), JointBatchNorm(made), nn.ReLU(inplace=True)]
    layers.append(nn.Linear(*widths[-2:], bias=not last_norm))
    if last_norm:
        layers.append(JointBatchNorm(widths[-1], affine=False))
    return nn.Sequential(*layers)


class JointBatchNorm(nn.Module):
    """Batch normalisation of rows by the statistics of the joint batch over all processes, on any device.

    torch's own `SyncBatchNorm` runs on GPUs only, and without one a loss would depend on how many processes there are.
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
        x = at_least_float32(x)  # differences of near-equal numbers: never in half precision
        mean, variance = self._batch_statistics(x) if self.training else (self.running_mean, self.running_variance)
        normal = (x - mean) * torch.rsqrt(variance + self.epsilon)
        return normal if self.scale is None or self.shift is None else normal * self.scale + self.shift

    def _batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean = mean_over_processes(x.mean(0))
        variance = mean_over_processes((x - mean).square().mean(0))
        ema_update(self.running_mean, mean, self.momentum)
        ema_update(self.running_variance, variance, self.momentum)
        return mean, variance
