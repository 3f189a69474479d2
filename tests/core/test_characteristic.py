"""The characteristic function: both ways against the definition, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jepatlas.core.normality import characteristic_function
from jepatlas.core.seeding import torch_generator

WAYS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])


def normal(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, "samples")).to(dtype)


@WAYS
@pytest.mark.parametrize("shape", [(1, 1), (11, 2), (40, 300), (3, 513)])
def test_definition(compiled: bool, shape: tuple[int, int]) -> None:
    samples = normal(*shape)
    cosine, sine = characteristic_function(samples, 5, 2.0, compiled=compiled)
    for k, t in enumerate((0.0, 0.5, 1.0, 1.5, 2.0)):
        np.testing.assert_allclose(cosine[k], np.cos(t * samples.numpy()).mean(0), atol=1e-13)
        np.testing.assert_allclose(sine[k], np.sin(t * samples.numpy()).mean(0), atol=1e-13)


@WAYS
def test_gradient(compiled: bool) -> None:
    samples = (normal(7, 3) * 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: characteristic_function(u, 9, 3.0, compiled=compiled), samples)
    assert torch.autograd.gradgradcheck(lambda u: characteristic_function(u, 9, 3.0, compiled=compiled), samples)


@settings(max_examples=40)
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 300),
    knots=st.integers(2, 33),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_the_two_ways_agree_in_value_and_gradient(rows: int, columns: int, knots: int, scale: float) -> None:
    answers = []
    for compiled in (True, False):
        samples = (normal(rows, columns, dtype=torch.float32) * scale).requires_grad_()
        cosine, sine = characteristic_function(samples, knots, 3.0, compiled=compiled)
        (gradient,) = torch.autograd.grad((cosine.square() + sine).sum(), samples)
        answers.append((cosine, sine, gradient))
    for compiled, plain in zip(*answers, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)


@WAYS
def test_float32_is_close_to_float64_at_the_size_of_a_training_step(compiled: bool) -> None:
    samples = normal(1024, 64)
    exact = characteristic_function(samples, 17, 3.0, compiled=compiled)
    single = characteristic_function(samples.float(), 17, 3.0, compiled=compiled)
    for a, b in zip(single, exact, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=0, atol=5e-6)


def test_sigreg_of_a_training_step_is_the_same_both_ways() -> None:
    """1024 rows of 64 latents on 1024 slices: the statistic, as the loss has it, to 1e-5."""
    slices = normal(64, 1024, dtype=torch.float32)
    columns = normal(1024, 64, dtype=torch.float32) @ (slices / slices.norm(dim=0))
    normal_ones = torch.exp(-torch.linspace(0, 3, 17).square() / 2)[:, None]
    one, other = (
        ((cosine - normal_ones).square() + sine.square()).mean()
        for cosine, sine in (characteristic_function(columns, 17, 3.0, compiled=way) for way in (True, False))
    )
    torch.testing.assert_close(one, other, rtol=1e-5, atol=0)


def test_rows_that_are_not_contiguous() -> None:
    samples = normal(6, 8).T
    torch.testing.assert_close(
        characteristic_function(samples, 7, 3.0, compiled=True),
        characteristic_function(samples.contiguous(), 7, 3.0, compiled=False),
    )
