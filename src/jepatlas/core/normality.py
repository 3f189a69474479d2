"""The Epps–Pulley test of normality and the empirical characteristic function it is computed from.

The characteristic function is evaluated at equally spaced knots. Only one sine and one cosine per sample are computed;
the other knots follow by the Chebyshev recurrence

    cos (k+1)θ = 2 cos θ cos kθ − cos (k−1)θ,  and the same for the sine,

so that no (rows, slices, knots) tensor is stored. The backward pass runs the recurrence again. A compiled kernel
(`kernels/harmonics.py`) is used on a CPU, plain torch on any device; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from jepatlas.core.distributed import mean_over_processes, world_size

__all__ = ["characteristic_function", "epps_pulley", "epps_pulley_null", "epps_pulley_of"]


def epps_pulley(samples_bs: Tensor, knots: int = 17, limit: float = 3.0) -> Tensor:
    """Distance of each column from N(0, 1):  n ∫ |φ̂(t) − e^{−t²/2}|² e^{−t²/2} dt  over [−limit, limit].

    φ̂ is the empirical characteristic function of the rows of *all* processes. It is averaged over them
    before squaring: the mean of squares would be a different, batch-size-dependent statistic.
    Half precision is raised to float32: it is too coarse for a sum of squares of small gaps.
    """
    samples_bs = samples_bs.to(torch.promote_types(samples_bs.dtype, torch.float32))
    cosine, sine = characteristic_function(samples_bs, knots, limit)
    count = len(samples_bs) * world_size()
    return epps_pulley_of(mean_over_processes(cosine), mean_over_processes(sine), count, limit)


def epps_pulley_of(cosine_ks: Tensor, sine_ks: Tensor, count: int, limit: float = 3.0) -> Tensor:
    """The same from the characteristic function of `count` rows."""
    weight, target = _quadrature(len(cosine_ks), limit, cosine_ks.dtype, cosine_ks.device)
    return count * (weight @ ((cosine_ks - target).square() + sine_ks.square()))


@cache
def epps_pulley_null(knots: int = 17, limit: float = 3.0) -> float:
    """Expected value of `epps_pulley` for standard normal samples: ∫ (1 − e^{−t²}) e^{−t²/2} dt, for any n.

    >>> round(epps_pulley_null(), 3)
    1.052
    """
    weight, target = _quadrature(knots, limit, torch.float64, torch.device("cpu"))
    return float(weight @ (1 - target.square()))


@cache
@torch.inference_mode(False)  # a tensor cached in inference mode could not be used for training later
def _quadrature(knots: int, limit: float, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Trapezoid rule on [0, limit], doubled by symmetry; its weights include e^{−t²/2}."""
    t = torch.linspace(0, limit, knots, dtype=dtype, device=device)
    target = torch.exp(-t.square() / 2)
    weight = torch.full_like(t, 2 * limit / (knots - 1))
    weight[0] = weight[-1] = limit / (knots - 1)
    return weight * target, target[:, None]


def characteristic_function(
    samples_bs: Tensor, knots: int, limit: float, *, compiled: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Column means of cos(t_k u) and sin(t_k u) at `knots` points t_k on [0, limit]: two (knots, s) tensors.

    `compiled` selects the numba kernel, which is the default on a CPU.
    """
    compiled = samples_bs.device.type == "cpu" if compiled is None else compiled
    return _CharacteristicFunction.apply(samples_bs, knots, limit, compiled)  # pyright: ignore[reportReturnType]


class _CharacteristicFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, samples: Tensor, knots: int, limit: float, compiled: bool) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(samples)
        ctx.step, ctx.compiled = limit / (knots - 1), compiled
        cosine, sine = (_sums_compiled if compiled else _sums)(samples, ctx.step, knots)
        return cosine / len(samples), sine / len(samples)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (samples,) = ctx.saved_tensors
        # Double differentiation needs torch operations.
        gradient = _gradient_compiled if ctx.compiled and not torch.is_grad_enabled() else _gradient
        grad_cosine, grad_sine = (grad / len(samples) for grad in grads)
        return gradient(samples, ctx.step, grad_cosine, grad_sine), None, None, None


def _sums(samples: Tensor, step: float, knots: int) -> tuple[Tensor, Tensor]:
    sums = [(c.sum(0), s.sum(0)) for c, s in _harmonics(samples * step, knots)]
    cosine, sine = zip(*sums, strict=True)
    return torch.stack(cosine), torch.stack(sine)


def _gradient(samples: Tensor, step: float, grad_cosine: Tensor, grad_sine: Tensor) -> Tensor:
    """∂/∂u Σ_k (g_k cos kθ + f_k sin kθ) = step · Σ_k k (f_k cos kθ − g_k sin kθ), with θ = step · u."""
    total = torch.zeros_like(samples)
    for k, (c, s) in enumerate(_harmonics(samples * step, len(grad_cosine))):
        total = total + k * (grad_sine[k] * c - grad_cosine[k] * s)
    return step * total


def _harmonics(theta: Tensor, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    c, s = torch.cos(theta), torch.sin(theta)
    double = 2 * c
    before = (torch.ones_like(c), torch.zeros_like(c))
    now = (c, s)
    for _ in range(count):
        yield before
        before, now = now, (double * now[0] - before[0], double * now[1] - before[1])


def _sums_compiled(samples: Tensor, step: float, knots: int) -> tuple[Tensor, Tensor]:
    from jepatlas.core.kernels.harmonics import harmonic_sums  # noqa: PLC0415  (numba takes a second to import)

    cosine, sine = harmonic_sums(_columns(samples), step, knots)
    return torch.from_numpy(cosine).T, torch.from_numpy(sine).T


def _gradient_compiled(samples: Tensor, step: float, grad_cosine: Tensor, grad_sine: Tensor) -> Tensor:
    from jepatlas.core.kernels.harmonics import harmonic_gradient  # noqa: PLC0415

    gradient = harmonic_gradient(_columns(samples), step, _columns(grad_cosine), _columns(grad_sine))
    return torch.from_numpy(gradient).T


def _columns(values: Tensor) -> Any:
    """The columns as contiguous rows of a numpy array; no copy if they are so in memory."""
    return values.detach().T.contiguous().numpy()
