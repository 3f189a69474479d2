"""SIGReg, forward and backward: the recurrence over knots against the outer product of projections and knots."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.timing import Comparison, compare
from jepatlas.base.seeding import torch_generator
from jepatlas.objectives import draw_slices, sigreg

__all__ = ["run", "straightforward"]

SIZES = ((256, 2, 64), (256, 64, 256), (1024, 64, 1024))  # rows, dimensions, slices


def straightforward(h_bd: Tensor, slices_ds: Tensor, knots: int = 17, limit: float = 3.0) -> Tensor:
    """The definition, as a tensor of (rows, slices, knots)."""
    t = torch.linspace(0, limit, knots)
    target = torch.exp(-t.square() / 2)
    angles = (h_bd @ slices_ds)[:, :, None] * t
    gap = (angles.cos().mean(0) - target).square() + angles.sin().mean(0).square()
    return len(h_bd) * 2 * torch.trapezoid(gap * target, t).mean()


def run() -> Iterator[Comparison]:
    for rows, dim, count in SIZES:
        slices = draw_slices(dim, count, torch_generator(0, "slices"))
        h = torch.randn(rows, dim, generator=torch_generator(0, "h"), requires_grad=True)
        name = f"sigreg {rows}×{dim}, {count} slices"
        yield compare(name, _both_ways(straightforward, h, slices), _both_ways(sigreg, h, slices))


def _both_ways(loss: Callable[[Tensor, Tensor], Tensor], h: Tensor, slices: Tensor) -> Callable[[], object]:
    return lambda: torch.autograd.grad(loss(h, slices), h)
