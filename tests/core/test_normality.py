"""The Epps–Pulley statistic and the characteristic function, compared with their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from core.moments_reference import assert_moments, normal
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_processes
from scipy.integrate import trapezoid
from torch import Tensor

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.moments import Moments, batch_covariance
from jepatlas.core.normality import characteristic_function, epps_pulley, epps_pulley_null
from jepatlas.core.seeding import torch_generator


def slow_epps_pulley(samples: np.ndarray, knots: int, limit: float) -> np.ndarray:
    """n ∫ |φ̂ − φ|² φ dt by the trapezoid rule on [−limit, limit], one column and one t at a time."""
    t = np.linspace(-limit, limit, 2 * knots - 1)
    values = []
    for column in samples.T:
        integrand = []
        for point in t:
            empirical = sum(complex(math.cos(point * u), math.sin(point * u)) for u in column) / len(column)
            target = math.exp(-(point**2) / 2)
            integrand.append(abs(empirical - target) ** 2 * target)
        values.append(len(column) * trapezoid(integrand, t))
    return np.array(values)


def plain_epps_pulley(samples: Tensor, knots: int = 17, limit: float = 3.0) -> Tensor:
    """Plain tensor implementation, differentiated by autograd."""
    t = torch.linspace(0, limit, knots, dtype=samples.dtype)
    angle = t[:, None, None] * samples
    target = torch.exp(-t.square() / 2)[:, None]
    gap = (angle.cos().mean(1) - target).square() + angle.sin().mean(1).square()
    return 2 * len(samples) * torch.trapezoid(gap * target, t, dim=0)


@pytest.mark.parametrize(("knots", "limit"), [(17, 3.0), (2, 3.0), (3, 1.0), (33, 5.0)])
def test_epps_pulley_matches_its_definition(knots: int, limit: float):
    samples = normal(23, 4) * torch.tensor([0.1, 1.0, 3.0, 40.0], dtype=torch.float64) + 0.3
    expected = slow_epps_pulley(samples.numpy(), knots, limit)
    np.testing.assert_allclose(epps_pulley(samples, knots, limit), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(plain_epps_pulley(samples, knots, limit), expected, rtol=1e-10, atol=1e-12)


def test_epps_pulley_gradient_matches_autograd():
    samples = (normal(7, 3) * 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: epps_pulley(u, 9), samples)
    assert torch.autograd.gradgradcheck(lambda u: epps_pulley(u, 9), samples)
    weight = normal(3, name="weight")
    (ours,) = torch.autograd.grad(weight @ epps_pulley(samples), samples)
    (plain,) = torch.autograd.grad(weight @ plain_epps_pulley(samples), samples)
    torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_epps_pulley_in_float32(scale: float):
    exact = (normal(512, 16) * scale).float().double().requires_grad_()
    single = exact.detach().float().requires_grad_()
    value, value_single = epps_pulley(exact), epps_pulley(single)
    assert value_single.dtype == torch.float32
    torch.testing.assert_close(value_single.double(), value, rtol=2e-5, atol=1e-4)
    (grad,) = torch.autograd.grad(value.sum(), exact)
    (grad_single,) = torch.autograd.grad(value_single.sum(), single)
    torch.testing.assert_close(grad_single.double(), grad, rtol=0, atol=2e-5 * float(grad.abs().max()))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_epps_pulley_of_half_precision_is_computed_in_float32(dtype: torch.dtype):
    samples = normal(256, 4).to(dtype).requires_grad_()
    value = epps_pulley(samples)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, epps_pulley(samples.double()).float(), rtol=1e-4, atol=1e-4)
    value.sum().backward()
    assert samples.grad is not None and samples.grad.dtype == dtype


@pytest.mark.parametrize(("knots", "limit"), [(17, 3.0), (9, 2.0)])
def test_epps_pulley_null_is_the_mean_over_normal_samples(knots: int, limit: float):
    for n in (8, 200):
        values = epps_pulley(normal(n, 20_000 if n == 8 else 4000, name="null"), knots, limit)
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - epps_pulley_null(knots, limit)) < 4 * error
    if knots == 17:
        t = np.linspace(-3, 3, 10_001)
        integral = trapezoid((1 - np.exp(-(t**2))) * np.exp(-(t**2) / 2), t)
        assert epps_pulley_null() == pytest.approx(integral, rel=2e-3)


def test_epps_pulley_of_a_collapsed_batch():
    value = float(epps_pulley(torch.zeros(512, 1, dtype=torch.float64)))
    t = np.linspace(-3, 3, 33)
    phi = np.exp(-(t**2) / 2)
    assert value == pytest.approx(512 * trapezoid((1 - phi) ** 2 * phi, t), rel=1e-12)
    assert value == pytest.approx(206, abs=0.5)
    # ∫ (φ − 2φ² + φ³) over [−3, 3] in closed form
    closed = sum(c * math.sqrt(2 * math.pi / k) * math.erf(3 * math.sqrt(k / 2)) for c, k in [(1, 1), (-2, 2), (1, 3)])
    assert value == pytest.approx(512 * closed, rel=1e-3)


def statistics_of_my_rows(sizes: list[int]) -> dict[str, Any]:
    """The job of the next test; `sizes` are the numbers of rows per process for the moments."""
    x = normal(sum(sizes), 3)
    mine = torch.split(x, sizes)[rank()]
    joint = Moments.of(mine).over_processes()
    u = normal(10 * world_size(), 4)
    mean, covariance = batch_covariance(u.chunk(world_size())[rank()])
    return {
        "moments": (joint.count, joint.mean, joint.scatter),
        "epps_pulley": epps_pulley(u.chunk(world_size())[rank()]),
        "covariance": (mean, covariance),
    }


@pytest.mark.slow
def test_statistics_over_processes_match_the_joint_batch():
    results = run_processes(statistics_of_my_rows, 2, [30, 12])
    x, u = normal(42, 3), normal(20, 4)
    for result in results:
        assert_moments(Moments(*result["moments"]), x.numpy())
        np.testing.assert_allclose(result["epps_pulley"], epps_pulley(u), rtol=1e-12)
        np.testing.assert_allclose(result["epps_pulley"], slow_epps_pulley(u.numpy(), 17, 3.0), rtol=1e-10)
        np.testing.assert_allclose(result["covariance"][0], u.numpy().mean(0), atol=1e-12)
        np.testing.assert_allclose(result["covariance"][1], np.cov(u.numpy(), rowvar=False), atol=1e-12)
    first, second = (result["moments"] for result in results)
    assert first[0] == second[0] and all(torch.equal(a, b) for a, b in zip(first[1:], second[1:], strict=True))


def test_gradients_work_after_a_first_call_in_inference_mode():
    knots = 29  # not used in any other test
    with torch.inference_mode():
        epps_pulley(torch.randn(50, 2), knots)
    samples = torch.randn(50, 2, requires_grad=True)
    epps_pulley(samples, knots).sum().backward()
    assert samples.grad is not None and samples.grad.isfinite().all()


def samples_of(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, "samples")).to(dtype)


WAYS = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "plain"])


@WAYS
@pytest.mark.parametrize("shape", [(1, 1), (11, 2), (40, 300), (3, 513)])
def test_characteristic_function_matches_its_definition(compiled: bool, shape: tuple[int, int]) -> None:
    samples = samples_of(*shape)
    cosine, sine = characteristic_function(samples, 5, 2.0, compiled=compiled)
    for k, t in enumerate((0.0, 0.5, 1.0, 1.5, 2.0)):
        np.testing.assert_allclose(cosine[k], np.cos(t * samples.numpy()).mean(0), atol=1e-13)
        np.testing.assert_allclose(sine[k], np.sin(t * samples.numpy()).mean(0), atol=1e-13)


@WAYS
def test_characteristic_function_gradient(compiled: bool) -> None:
    samples = (samples_of(7, 3) * 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: characteristic_function(u, 9, 3.0, compiled=compiled), samples)
    assert torch.autograd.gradgradcheck(lambda u: characteristic_function(u, 9, 3.0, compiled=compiled), samples)


@settings(max_examples=40)
@given(
    rows=st.integers(1, 70),
    columns=st.integers(1, 300),
    knots=st.integers(2, 33),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
)
def test_compiled_and_plain_kernels_agree_in_value_and_gradient(
    rows: int, columns: int, knots: int, scale: float
) -> None:
    answers = []
    for compiled in (True, False):
        samples = (samples_of(rows, columns) * scale).requires_grad_()
        cosine, sine = characteristic_function(samples, knots, 3.0, compiled=compiled)
        (gradient,) = torch.autograd.grad((cosine.square() + sine).sum(), samples)
        answers.append((cosine, sine, gradient))
    for compiled, plain in zip(*answers, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=1e-10, atol=1e-10)


@given(scale=st.sampled_from([1e-3, 1.0, 30.0, 1e4]))
def test_the_compiled_kernel_is_as_accurate_in_float32_as_torch(scale: float) -> None:
    """Of both, errors of value and gradient against float64: the compiled one's are at most 1.5 times as large."""
    samples = samples_of(1, 2000, dtype=torch.float32) * scale
    results = {}
    for way, given_samples in ((True, samples), (False, samples), (None, samples.double())):
        leaf = given_samples.clone().requires_grad_()
        cosine, sine = characteristic_function(leaf, 17, 3.0, compiled=bool(way))
        (gradient,) = torch.autograd.grad((cosine.square() + sine).sum(), leaf)
        results[way] = [cosine.detach().double(), sine.detach().double(), gradient.double()]
    for ours, plain, exact in zip(*results.values(), strict=True):
        assert (ours - exact).abs().max() <= 1.5 * (plain - exact).abs().max()


def test_samples_without_a_phase() -> None:
    samples = torch.tensor([[1e9, 1e30, math.nan, math.inf]])
    cosine, sine = characteristic_function(samples, 17, 3.0, compiled=True)
    assert (cosine[1:, :2].abs() <= 1.01).all() and (sine[1:, :2].abs() <= 1.01).all()
    assert cosine[1:, 2:].isnan().all() and sine[1:, 2:].isnan().all()


@WAYS
def test_float32_is_close_to_float64_for_a_training_batch(compiled: bool) -> None:
    samples = samples_of(1024, 64)
    exact = characteristic_function(samples, 17, 3.0, compiled=compiled)
    single = characteristic_function(samples.float(), 17, 3.0, compiled=compiled)
    for a, b in zip(single, exact, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=0, atol=5e-6)


def test_sigreg_of_compiled_and_plain_kernels_agree() -> None:
    """1024 rows of 64 dimensions and 1024 slices; the loss agrees to 1e-5."""
    slices = samples_of(64, 1024, dtype=torch.float32)
    columns = samples_of(1024, 64, dtype=torch.float32) @ (slices / slices.norm(dim=0))
    normal_ones = torch.exp(-torch.linspace(0, 3, 17).square() / 2)[:, None]
    one, other = (
        ((cosine - normal_ones).square() + sine.square()).mean()
        for cosine, sine in (characteristic_function(columns, 17, 3.0, compiled=way) for way in (True, False))
    )
    torch.testing.assert_close(one, other, rtol=1e-5, atol=0)


def test_non_contiguous_rows() -> None:
    samples = samples_of(6, 8).T
    torch.testing.assert_close(
        characteristic_function(samples, 7, 3.0, compiled=True),
        characteristic_function(samples.contiguous(), 7, 3.0, compiled=False),
    )
