"""The empirical characteristic function at equally spaced knots, differentiable, in two ways that tests hold equal.

One sine and one cosine per sample; the other knots follow by the Chebyshev recurrence

    cos (k+1)θ = 2 cos θ cos kθ − cos (k−1)θ,  and the same for the sine,

so that no (rows, slices, knots) tensor is ever made. The backward pass runs the recurrence again. On a CPU it is
compiled (`kernels/harmonics.py`); plain torch does the same on any device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = ["characteristic_function"]


def characteristic_function(
    samples_bs: Tensor, knots: int, limit: float, *, compiled: bool | None = None
) -> tuple[Tensor, Tensor]:
    """Column means of cos(t_k u) and sin(t_k u) at `knots` points t_k on [0, limit]: two (knots, s) tensors.

    `compiled` chooses the way; by default the compiled one on a CPU.
    """
    compiled = samples_bs.device.type == "cpu" if compiled is None else compiled
    return _CharacteristicFunction.apply(samples_bs, knots, limit, compiled)  # pyright: ignore[reportReturnType]


class _CharacteristicFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, samples: Tensor, knots: int, limit: float, compiled: bool) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(samples)
        ctx.knots, ctx.step, ctx.compiled = knots, limit / (knots - 1), compiled
        theta = samples * ctx.step
        cosine, sine = (_sums_compiled if compiled else _sums)(theta, knots)
        return cosine / len(samples), sine / len(samples)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (samples,) = ctx.saved_tensors
        # A gradient that is itself to be differentiated must be made of torch's own operations.
        gradient = _gradient_compiled if ctx.compiled and not torch.is_grad_enabled() else _gradient
        return gradient(samples * ctx.step, *grads) * (ctx.step / len(samples)), None, None, None


def _sums(theta: Tensor, knots: int) -> tuple[Tensor, Tensor]:
    sums = [(c.sum(0), s.sum(0)) for c, s in _harmonics(theta, knots)]
    cosine, sine = zip(*sums, strict=True)
    return torch.stack(cosine), torch.stack(sine)


def _gradient(theta: Tensor, grad_cosine: Tensor, grad_sine: Tensor) -> Tensor:
    """∂/∂θ Σ_k (g_k cos kθ + f_k sin kθ) = Σ_k k (f_k cos kθ − g_k sin kθ)"""
    total = torch.zeros_like(theta)
    for k, (c, s) in enumerate(_harmonics(theta, len(grad_cosine))):
        total = total + k * (grad_sine[k] * c - grad_cosine[k] * s)
    return total


def _harmonics(theta: Tensor, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    c, s = torch.cos(theta), torch.sin(theta)
    double = 2 * c
    before = (torch.ones_like(c), torch.zeros_like(c))
    now = (c, s)
    for _ in range(count):
        yield before
        before, now = now, (double * now[0] - before[0], double * now[1] - before[1])


def _sums_compiled(theta: Tensor, knots: int) -> tuple[Tensor, Tensor]:
    from jepatlas.core.kernels.harmonics import harmonic_sums  # noqa: PLC0415  (numba takes a second to import)

    cosine, sine = harmonic_sums(_array(theta.cos()), _array(theta.sin()), knots)
    return torch.from_numpy(cosine), torch.from_numpy(sine)


def _gradient_compiled(theta: Tensor, grad_cosine: Tensor, grad_sine: Tensor) -> Tensor:
    from jepatlas.core.kernels.harmonics import harmonic_gradient  # noqa: PLC0415

    return torch.from_numpy(harmonic_gradient(*map(_array, (theta.cos(), theta.sin(), grad_cosine, grad_sine))))


def _array(value: Tensor) -> Any:
    return value.detach().contiguous().numpy()
