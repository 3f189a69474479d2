"""SIGReg, forward and backward: the recurrence over knots, compared with the product of projections and knots."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.measurement import Comparison, compare, peak_memory
from jepatlas.core.seeding import torch_generator
from jepatlas.objectives import draw_slices
from jepatlas.objectives.sigreg import sigreg

__all__ = ["run", "straightforward"]

SIZES = ((256, 2, 64), (256, 64, 256), (1024, 64, 1024))  # rows, dimensions, slices
LARGEST = SIZES[-1]
FLOPS = 100  # of the recurrence and its gradient, for each sample and slice, besides one sincos


def straightforward(h_bd: Tensor, slices_ds: Tensor, knots: int = 17, limit: float = 3.0) -> Tensor:
    """SIGReg by its definition, with a tensor of (rows, slices, knots)."""
    t = torch.linspace(0, limit, knots)
    target = torch.exp(-t.square() / 2)
    angles = (h_bd @ slices_ds)[:, :, None] * t
    gap = (angles.cos().mean(0) - target).square() + angles.sin().mean(0).square()
    return len(h_bd) * 2 * torch.trapezoid(gap * target, t).mean()


def run() -> Iterator[Comparison]:
    for size in SIZES:
        yield compare(f"sigreg {_named(size)}", both_ways(straightforward, size), both_ways(sigreg, size))
    memory = [peak_memory(prepare, loss) for loss in ("straightforward", "sigreg")]
    yield Comparison.of(f"peak memory of sigreg {_named(LARGEST)}", memory[:1], memory[1:], "MB")
    yield compare(
        f"sigreg {_named(LARGEST)}: ours, and one sincos and {FLOPS} flops", both_ways(sigreg, LARGEST), _limit()
    )


def both_ways(loss: Callable[[Tensor, Tensor], Tensor], size: tuple[int, int, int]) -> Callable[[], object]:
    rows, dim, count = size
    slices = draw_slices(dim, count, torch_generator(0, "slices"))
    h = torch.randn(rows, dim, generator=torch_generator(0, "h"), requires_grad=True)
    return lambda: torch.autograd.grad(loss(h, slices), h)


def _named(size: tuple[int, int, int]) -> str:
    return "{}×{}, {} slices".format(*size)


def prepare(loss: str) -> Callable[[], object]:
    """The largest case, after loading and compiling."""
    torch.set_num_threads(1)
    work = {"straightforward": straightforward, "sigreg": sigreg}[loss]
    both_ways(work, SIZES[0])()
    return both_ways(work, LARGEST)


def _limit() -> Callable[[], object]:
    """A lower bound for the recurrence: torch's sine and cosine, and its flops at the rate of a matrix product."""
    rows, dim, count = LARGEST
    angles = torch.randn(rows, count, generator=torch_generator(0, "angles"))
    inner = FLOPS // 2  # a multiplication and an addition each
    left, right = torch.randn(rows, inner), torch.randn(inner, count)
    projections = torch.randn(rows, dim), torch.randn(dim, count)

    return lambda: (torch.sin(angles), torch.cos(angles), left @ right, projections[0] @ projections[1])
