"""IQE, forward and backward: compiled merging, and sorting of left ends, compared with sorting all ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.measurement import Comparison, compare, peak_memory
from jepatlas.core.interval_union import union_length
from jepatlas.core.seeding import torch_generator
from jepatlas.energy.heads import IQE, EnergyHead, IQEConfig
from jepatlas.energy.heads.head import MaxMean

__all__ = ["run", "textbook"]

BATCH = 1024
SIZES = ((128, 8), (512, 16), (2048, 64))  # width, chunks
ALL, SOME = 4096, 512  # rows of all pairs; the textbook form would take minutes for more than some of them

Components = Callable[[Tensor, Tensor], Tensor]


def textbook(left: Tensor, right: Tensor) -> Tensor:
    """Union lengths by sorting all 2k ends and counting the open intervals between consecutive ends."""
    right = torch.maximum(left, right)
    ends, order = torch.cat([left.expand(right.shape), right], dim=-1).sort(dim=-1)
    step = torch.ones(left.shape[-1], dtype=left.dtype)
    opened = torch.cat([step, -step]).expand(ends.shape).gather(-1, order).cumsum(-1)
    return (ends.diff(dim=-1) * (opened[..., :-1] > 0)).sum(-1)


class Form(EnergyHead):
    """IQE with another implementation of its components."""

    def __init__(self, components: Components, width: int, chunks: int) -> None:
        super().__init__(width, guaranteed_quasimetric=True, pseudo=True, symmetric=False)
        self.components, self.chunks, self.reduce = components, (chunks, width // chunks), MaxMean()

    def energy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.reduce(self.components(x.unflatten(-1, self.chunks), y.unflatten(-1, self.chunks)))


def run() -> Iterator[Comparison]:
    for size in SIZES:
        forms, named = heads(*size), "{}×{}, {} chunks".format(BATCH, *size)
        check_equal(forms, size[0])
        for name in ("ours", "plain torch"):
            work = both_ways(forms["textbook"], size[0]), both_ways(forms[name], size[0])
            yield compare(f"IQE {named}: textbook, {name}", *work)
        held = [held_for_backward(forms[name], size[0]) for name in ("textbook", "ours")]
        yield Comparison.of(f"held for the backward pass of IQE {named}: textbook, ours", held[:1], held[1:], "MB")
    yield from _all_pairs()


def _all_pairs() -> Iterator[Comparison]:
    width, chunks = SIZES[0]
    forms, x, y = heads(width, chunks), rows(SOME, width, "x"), rows(ALL, width, "y")
    with torch.no_grad():
        some = [partial(forms[name].all_pairs, x, y) for name in ("textbook", "ours")]
        yield compare(f"all {SOME}×{ALL} pairs, width {width}, {chunks} chunks: textbook, ours", *some, turns=1)
    memory = [peak_memory(prepare, name) for name in ("textbook", "ours")]
    name = f"peak memory of all pairs in tiles: {SOME}×{ALL} textbook, {ALL}×{ALL} ours"
    yield Comparison.of(name, memory[:1], memory[1:], "MB")


def heads(width: int, chunks: int) -> dict[str, EnergyHead]:
    plain = partial(union_length, compiled=False)
    return {
        "textbook": Form(textbook, width, chunks),
        "plain torch": Form(plain, width, chunks),
        "ours": IQE(width, IQEConfig(chunks)),
    }


def rows(count: int, width: int, name: str) -> Tensor:
    return torch.randn(count, width, generator=torch_generator(0, name))


def both_ways(head: EnergyHead, width: int) -> Callable[[], object]:
    x, y = (rows(BATCH, width, name).requires_grad_() for name in ("x", "y"))
    return lambda: torch.autograd.grad(head(x, y).sum(), (x, y))


def check_equal(forms: dict[str, EnergyHead], width: int) -> None:
    x, y = (rows(64, width, name).requires_grad_() for name in ("x", "y"))
    expected, *others = [(e := head(x, y), *torch.autograd.grad(e.sum(), (x, y))) for head in forms.values()]
    for other in others:
        torch.testing.assert_close(other, expected, rtol=1e-6, atol=1e-6)


def held_for_backward(head: EnergyHead, width: int) -> float:
    """Megabytes of the tensors that autograd saves, without duplicates."""
    x, y = (rows(BATCH, width, name).requires_grad_() for name in ("x", "y"))
    kept: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        kept[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        energy = head(x, y)
    assert energy.requires_grad
    return sum(kept.values()) / 2**20


def prepare(name: str) -> Callable[[], object]:
    """All pairs without gradients, after loading and compiling."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    width, chunks = SIZES[0]
    head, y = heads(width, chunks)[name], rows(ALL, width, "y")
    x = rows(SOME, width, "x") if name == "textbook" else y
    head.all_pairs(x[:2], y[:2])
    return lambda: head.all_pairs(x, y)
