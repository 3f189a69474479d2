"""Differentiable length of a union of intervals, ⋃_j [u_j, max(u_j, v_j)].

With the left ends sorted, l_1 ≤ l_2 ≤ …, and m_i the largest right end of the first i intervals, the length is

    Σ_i m_i − max(l_i, m_{i−1})    over the intervals that are not empty,

so that only k numbers are sorted instead of all 2k ends. A compiled kernel without a sort (`kernels/intervals.py`) is
used on a CPU; plain torch works on any device, in any precision, and under `torch.compile`. Tests compare the two.

Both keep one byte per interval for the backward pass: whether it starts or ends a piece of the union. The gradient is
+1 at the right end of each piece and −1 at its left end, and 0 for empty intervals, including u_j = v_j. Infinite ends
are allowed: [∞, ∞] and [−∞, −∞] are empty, a piece from or to infinity has length ∞, and gradients stay finite. A NaN
makes the length NaN.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["union_length", "union_length_of_pairs"]

STARTS, ENDS = 1, 2  # as in the kernel


def union_length(left: Tensor, right: Tensor, *, compiled: bool | None = None) -> Tensor:
    """The length of ⋃_j [left_j, max(left_j, right_j)] over the last dimension; the others are broadcast.

    `compiled` selects the kernel, which is the default on a CPU in float32 and float64.

    >>> union_length(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([2.0, 3.0, 4.0]))
    tensor(3.)
    """
    compiled = _serves(left, right) if compiled is None else compiled
    ends = torch.broadcast_tensors(left, right)
    return _UnionLength.apply(*ends, compiled)[0]  # pyright: ignore[reportOptionalSubscript]


def union_length_of_pairs(left_nck: Tensor, right_mck: Tensor, *, compiled: bool | None = None) -> Tensor:
    """The lengths of all n × m pairs, (n, m, c); the kernel does not store their n·m·c·k ends."""
    if not (_serves(left_nck, right_mck) if compiled is None else compiled):
        return union_length(left_nck[:, None], right_mck, compiled=False)
    return _UnionLengthOfPairs.apply(left_nck, right_mck)  # pyright: ignore[reportReturnType]


def _serves(left: Tensor, right: Tensor) -> bool:
    """Whether the kernel can be used. torch.compile cannot trace it."""
    known = left.dtype == right.dtype and left.dtype in (torch.float32, torch.float64)
    return known and left.device.type == right.device.type == "cpu" and not torch.compiler.is_compiling()


class _UnionLength(torch.autograd.Function):
    @staticmethod
    def forward(left: Tensor, right: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
        return (_lengths_compiled if compiled else _lengths)(left, right)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.compiled = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        (roles,) = ctx.saved_tensors
        # Double differentiation needs torch operations.
        gradients = _gradients_compiled if ctx.compiled and not torch.is_grad_enabled() else _gradients
        return *gradients(roles, grads[0]), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, tuple[int, int]]:
        """Batched dimensions become leading dimensions, which the function supports."""
        *ends, compiled = args
        ends = [end if dim is None else end.movedim(dim, 0) for end, dim in zip(ends, in_dims, strict=False)]
        return _UnionLength.apply(*torch.broadcast_tensors(*ends), compiled), (0, 0)


def _lengths(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Lengths and roles, by products and maxima: `torch.where` takes ten times as long on a CPU.

    An empty interval is treated as a piece [u, u] of length zero, whose roles are removed at the end.
    """
    left, order = left.sort(dim=-1, stable=True)
    right = right.gather(-1, order)
    opened = ~(right <= left)
    reach, holder = torch.maximum(left, right).cummax(-1)
    before = F.pad(reach[..., :-1], (1, 0), value=-math.inf)
    # nansum ignores ∞ − ∞; a NaN among the ends persists in the running maximum up to the last one
    total = (reach - torch.maximum(left, before)).nansum(-1).masked_fill_(reach[..., -1].isnan(), math.nan)
    starts = left >= before
    # The interval that holds the running maximum just before a piece starts ends the previous piece; the one that holds
    # it last ends the last piece. The first interval starts a piece, so rolling `starts` marks all of these places.
    closes = starts.roll(-1, -1).to(torch.uint8) * ENDS
    roles = torch.zeros_like(closes).scatter_add_(-1, holder, closes)
    roles = (roles | starts) * opened  # STARTS is 1
    return total, torch.empty_like(roles).scatter_(-1, order, roles)


def _lengths_compiled(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    from jepatlas.core.kernels.intervals import union_lengths  # noqa: PLC0415  (numba takes a second to import)

    k = left.shape[-1]
    total, roles = union_lengths(_array(left).reshape(-1, k), _array(right).reshape(-1, k))
    return torch.from_numpy(total).reshape(left.shape[:-1]), torch.from_numpy(roles).reshape(left.shape)


def _gradients(roles: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    return (roles & STARTS) * -grad[..., None], (roles >> 1) * grad[..., None]  # ENDS is 2


def _gradients_compiled(roles: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    from jepatlas.core.kernels.intervals import role_gradients  # noqa: PLC0415

    found = role_gradients(_array(roles).reshape(-1, roles.shape[-1]), _array(grad).reshape(-1))
    return torch.from_numpy(found[0]).reshape(roles.shape), torch.from_numpy(found[1]).reshape(roles.shape)


class _UnionLengthOfPairs(torch.autograd.Function):
    """Keeps only its two inputs; the backward pass finds the roles of each pair's intervals again."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        from jepatlas.core.kernels.intervals import union_lengths_of_pairs  # noqa: PLC0415

        ctx.save_for_backward(left, right)
        total = torch.from_numpy(union_lengths_of_pairs(*_sorted_pairs(left, right)))
        return total.masked_fill_(_pairs_with_nan(left, right), math.nan)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        from jepatlas.core.kernels.intervals import union_lengths_gradient  # noqa: PLC0415

        left, right = ctx.saved_tensors
        if torch.is_grad_enabled():
            roles = _lengths_compiled(*torch.broadcast_tensors(left[:, None], right))[1]
            grad_left, grad_right = _gradients(roles, *grads)
            return grad_left.sum(1), grad_right.sum(0)
        grad = grads[0].masked_fill(_pairs_with_nan(left, right), 0).transpose(1, 2)
        found = union_lengths_gradient(*_sorted_pairs(left, right), _array(grad))
        return torch.from_numpy(found[0]), torch.from_numpy(found[1]).permute(2, 0, 1)


def _sorted_pairs(left_nck: Tensor, right_mck: Tensor) -> tuple[Any, Any, Any]:
    """Left ends, right ends with the pairs last, and the order of the left ends."""
    order = left_nck.argsort(dim=-1, stable=True)
    return _array(left_nck), _array(right_mck.permute(1, 2, 0)), _array(order)


def _pairs_with_nan(left_nck: Tensor, right_mck: Tensor) -> Tensor:
    return left_nck.isnan().any(-1)[:, None] | right_mck.isnan().any(-1)


def _array(value: Tensor) -> Any:
    return value.detach().contiguous().numpy()
