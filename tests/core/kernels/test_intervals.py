"""Length of a union of intervals: compiled and plain kernels compared with the definition and each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from jepatlas.core.interval_union import union_length, union_length_of_pairs
from jepatlas.core.seeding import torch_generator

WAYS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])
INF = math.inf


def normal(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, "ends")).to(dtype)


def by_cells(left: np.ndarray, right: np.ndarray) -> float:
    """The definition: the ends divide the line into cells; sum the cells that some interval covers."""
    cuts = np.unique(np.concatenate([left, right]))
    cells = itertools.pairwise(cuts)
    return sum(b - a for a, b in cells if any(u <= a and b <= v for u, v in zip(left, right, strict=True)))


def lengths_and_gradients(left: Tensor, right: Tensor, compiled: bool) -> tuple[Tensor, Tensor, Tensor]:
    left, right = left.clone().requires_grad_(), right.clone().requires_grad_()
    total = union_length(left, right, compiled=compiled)
    weight = torch.linspace(1, 2, total.numel(), dtype=total.dtype).reshape(total.shape)
    grad_left, grad_right = torch.autograd.grad((total * weight).sum(), (left, right))
    return total.detach(), grad_left, grad_right


@WAYS
@pytest.mark.parametrize("k", [1, 2, 3, 8, 33])
def test_matches_definition(compiled: bool, k: int) -> None:
    for spread in (0.3, 3.0, 30.0):  # from one component to many
        left = normal(50, k) * spread
        right = left + normal(50, 1, k)[:, 0].flip(0)
        got = union_length(left, right, compiled=compiled).numpy()
        expected = [by_cells(u, v) for u, v in zip(left.numpy(), right.numpy(), strict=True)]
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@WAYS
def test_gradients_match_finite_differences(compiled: bool) -> None:
    ends = [(normal(2, 3, 2, 5)[i] * 2).requires_grad_() for i in (0, 1)]

    def function(left: Tensor, right: Tensor) -> Tensor:
        return union_length(left, right, compiled=compiled).square()

    assert torch.autograd.gradcheck(function, ends)
    assert torch.autograd.gradgradcheck(function, ends)


@WAYS
def test_all_pairs_match_broadcast_pairs_in_value_and_gradients(compiled: bool) -> None:
    left, right = normal(3, 2, 5).requires_grad_(), normal(5, 2, 5)[3:].clone().requires_grad_()

    def function(left: Tensor, right: Tensor) -> Tensor:
        return union_length_of_pairs(left, right, compiled=compiled).square()

    broadcast = union_length(left[:, None], right, compiled=not compiled)
    torch.testing.assert_close(function(left, right), broadcast.square())
    assert torch.autograd.gradcheck(function, (left, right))
    assert torch.autograd.gradgradcheck(function, (left, right))


def test_gradient_of_known_components() -> None:
    left = torch.tensor([0.0, 1.0, 5.0, 1.5, 9.0])  # two components, one interval inside another, one empty
    right = torch.tensor([2.0, 3.0, 6.0, 2.5, 8.0])
    for compiled in (True, False):
        total, grad_left, grad_right = lengths_and_gradients(left, right, compiled)
        assert float(total) == 4
        assert grad_left.tolist() == [-1, 0, -1, 0, 0]
        assert grad_right.tolist() == [0, 1, 1, 0, 0]


FEW = st.sampled_from([-INF, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0, INF])  # many ties, touching ends, empty intervals
ANY = st.floats(-100, 100, width=32)


@settings(max_examples=150)
@given(data=st.data(), k=st.integers(1, 9), few=st.booleans(), dtype=st.sampled_from([np.float32, np.float64]))
def test_compiled_and_plain_kernels_agree_with_ties_and_infinities(
    data: st.DataObject, k: int, few: bool, dtype: type
) -> None:
    ends = arrays(dtype, (4, k), elements=FEW if few else ANY)
    left, right = (torch.from_numpy(data.draw(ends)) for _ in range(2))
    one, other = (lengths_and_gradients(left, right, compiled) for compiled in (True, False))
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == left.dtype
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-5 if dtype is np.float32 else 1e-12)
    assert all(gradient.isfinite().all() for gradient in one[1:])
    if few:  # exact arithmetic with small numbers
        finite = np.isfinite(left.numpy()).all(1) & np.isfinite(right.numpy()).all(1)
        for u, v, length in zip(left.numpy()[finite], right.numpy()[finite], one[0].numpy()[finite], strict=True):
            assert length == by_cells(u, v)


@settings(max_examples=100)
@given(data=st.data(), k=st.integers(1, 6), few=st.booleans(), dtype=st.sampled_from([np.float32, np.float64]))
def test_all_pairs_agree_with_plain_torch_with_ties_and_infinities(
    data: st.DataObject, k: int, few: bool, dtype: type
) -> None:
    ends = [arrays(dtype, (rows, 2, k), elements=FEW if few else ANY) for rows in (3, 4)]
    left, right = (torch.from_numpy(data.draw(end)).requires_grad_() for end in ends)
    one, other = (pairs_and_gradients(left, right, compiled) for compiled in (True, False))
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == left.dtype
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-4 if dtype is np.float32 else 1e-12)


def test_many_pairs_and_nan() -> None:
    left, right = normal(3, 2, 5), normal(700, 2, 5)
    left[1, 0, 3] = right[600, 1, 2] = math.nan
    one, other = (pairs_and_gradients(left.requires_grad_(), right.requires_grad_(), way) for way in (True, False))
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True)
    assert one[0][1, :, 0].isnan().all() and one[0][:, 600, 1].isnan().all()
    assert int(one[0].isnan().sum()) == 700 + 3


def pairs_and_gradients(left: Tensor, right: Tensor, compiled: bool) -> tuple[Tensor, Tensor, Tensor]:
    total = union_length_of_pairs(left, right, compiled=compiled)
    weight = torch.linspace(1, 2, total.numel(), dtype=total.dtype).reshape(total.shape)
    return total.detach(), *torch.autograd.grad(total, (left, right), weight.masked_fill(total.isnan(), 0))


@settings(max_examples=60)
@given(data=st.data(), k=st.integers(1, 8))
def test_triangle_inequality_holds(data: st.DataObject, k: int) -> None:
    x, y, z = (torch.from_numpy(data.draw(arrays(np.float64, (5, k), elements=ANY))) for _ in range(3))
    assert (union_length(x, z) <= union_length(x, y) + union_length(y, z) + 1e-9).all()
    assert (union_length(x, x) == 0).all()


@WAYS
@pytest.mark.parametrize(
    ("left", "right", "length"),
    [
        ([INF, 0.0], [INF, 1.0], 1.0),  # an empty interval and length 1
        ([-INF, 0.0], [-INF, 1.0], 1.0),
        ([0.0, 3.0], [INF, 4.0], INF),
        ([-INF, 3.0], [0.0, 4.0], INF),
        ([-INF, -INF], [INF, 0.0], INF),
        ([0.0, 1.0], [INF, INF], INF),
        ([INF, 0.0], [0.0, -INF], 0.0),  # empty interval
        ([INF, INF], [-INF, INF], 0.0),
    ],
)
def test_infinite_ends(compiled: bool, left: list[float], right: list[float], length: float) -> None:
    total, *gradients = lengths_and_gradients(torch.tensor(left), torch.tensor(right), compiled)
    assert float(total) == length
    assert all(gradient.isfinite().all() for gradient in gradients)


@WAYS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_identical_ends_and_large_offsets(compiled: bool, dtype: torch.dtype) -> None:
    for offset in (0.0, 1e6, 1e30):
        x = normal(7, 5, dtype=dtype) + offset
        total, *gradients = lengths_and_gradients(x, x, compiled)
        assert (total == 0).all() and all((gradient == 0).all() for gradient in gradients)
        total, *gradients = lengths_and_gradients(x, x.flip(0), compiled)
        expected = [by_cells(u, v) for u, v in zip(x.double().numpy(), x.flip(0).double().numpy(), strict=True)]
        np.testing.assert_allclose(total.double(), expected, rtol=1e-6)
        assert all(gradient.isfinite().all() for gradient in gradients)


@WAYS
def test_short_interval_far_from_another_is_not_lost(compiled: bool) -> None:
    total = union_length(torch.tensor([0.0, 1e30]), torch.tensor([1.0, 1e30]), compiled=compiled)
    assert float(total) == 1


@WAYS
@pytest.mark.parametrize("side", [0, 1])
def test_nan_propagates(compiled: bool, side: int) -> None:
    for place in range(3):
        ends = [torch.tensor([[0.0, 1.0, 5.0], [0.0, 1.0, 5.0]]), torch.tensor([2.0, 3.0, 4.0])]
        ends[side] = torch.stack([torch.tensor([2.0, 3.0, 4.0])] * 2) if side else ends[side]
        ends[side][0, place] = math.nan
        total = union_length(ends[0], ends[1], compiled=compiled)
        assert total.isnan().tolist() == [True, False]


def test_backward_pass_keeps_one_byte_per_interval() -> None:
    left, right = (normal(64, 4, 8, dtype=torch.float32).requires_grad_() for _ in range(2))
    for compiled in (True, False):
        kept: list[Tensor] = []

        def keep(value: Tensor, kept: list[Tensor] = kept) -> Tensor:
            kept.append(value)
            return value

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
            union_length(left, right, compiled=compiled)
        assert sum(value.numel() * value.element_size() for value in kept) == left.numel()  # one byte each


def test_half_precision_and_mixed_dtypes_use_the_plain_kernel() -> None:
    left, right = normal(6, 4), normal(12, 4)[6:]
    exact = union_length(left, right)
    half = union_length(left.bfloat16(), right.bfloat16())
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), exact, rtol=0.05, atol=0.05)
    torch.testing.assert_close(union_length(left.float(), right), exact, rtol=1e-5, atol=1e-6)


def under_vmap(left: Tensor, right: Tensor) -> Tensor:
    return torch.func.vmap(torch.func.vmap(union_length, in_dims=(0, None)), in_dims=(None, 0), out_dims=1)(left, right)


def under_compile(left: Tensor, right: Tensor) -> Tensor:
    return torch.compile(union_length, backend="eager", fullgraph=True)(left[:, None], right)


@pytest.mark.parametrize("function", [under_vmap, under_compile], ids=["vmap", "compile"])
def test_transformed_functions(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    left, right = normal(4, 5).requires_grad_(), normal(9, 5)[4:].clone().requires_grad_()
    got, expected = function(left, right), union_length(left[:, None], right)
    torch.testing.assert_close(got, expected)
    for a, b in zip(*(torch.autograd.grad(t.square().sum(), (left, right)) for t in (got, expected)), strict=True):
        torch.testing.assert_close(a, b)


def test_functional_gradient() -> None:
    left, right = normal(5), normal(10)[5:]
    got = torch.func.grad(union_length)(left, right)
    torch.testing.assert_close(got, lengths_and_gradients(left, right, True)[1])
