"""Building blocks of heads: differences and lengths with infinite, huge and equal coordinates."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.energy.heads.head import difference, euclidean, where_finite

INF = math.inf


def test_equal_infinities_have_difference_zero():
    x, y = torch.tensor([INF, -INF, INF, 1.0, -INF]), torch.tensor([INF, -INF, -INF, INF, 2.0])
    assert difference(x, y).tolist() == [0, 0, -INF, INF, INF]


def test_the_gradient_is_zero_only_for_equal_infinities():
    x, y = torch.tensor([INF, 1.0, 1.0]).requires_grad_(), torch.tensor([INF, 1.0, 3.0])
    difference(x, y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, -1, -1]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=6), st.integers(-30, 30))
def test_length_at_every_scale(values: list[float], power: int):
    delta = torch.tensor(values, dtype=torch.float64)
    got = euclidean(delta * 10.0 ** (5 * power))
    expected = torch.tensor(math.hypot(*values), dtype=torch.float64) * 10.0 ** (5 * power)
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=0)


def test_infinite_rows_are_constants():
    delta = torch.tensor([[1.0, INF], [-INF, INF], [3.0, 4.0]]).requires_grad_()
    energy = where_finite(delta, lambda finite: finite.square().sum(-1))
    energy.sum().backward()
    assert energy.tolist() == [INF, INF, 25]
    assert delta.grad is not None and delta.grad.tolist() == [[0, 0], [0, 0], [6, 8]]
