"""Statistics against slow references written from their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import run_processes
from scipy.integrate import trapezoid
from torch import Tensor

from jepatlas.core.distributed import rank, world_size
from jepatlas.core.errors import InputError
from jepatlas.core.moments import Moments, batch_covariance
from jepatlas.core.normality import epps_pulley, epps_pulley_null
from jepatlas.core.seeding import torch_generator
from jepatlas.core.stats import bootstrap, spearman


def normal(*shape: int, name: str = "x") -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch_generator(0, name))


def assert_moments(moments: Moments, rows: np.ndarray) -> None:
    assert moments.count == len(rows)
    centred = rows - rows.mean(0)
    np.testing.assert_allclose(moments.mean, rows.mean(0), atol=1e-9)
    np.testing.assert_allclose(moments.scatter, centred.T @ centred, atol=1e-7)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_moments_of_parts_merge_to_those_of_the_whole(sizes, dim, seed):
    if sum(sizes) == 0:
        sizes = [*sizes, 1]
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sum(sizes), dim)) * rng.uniform(0.1, 10, dim) + rng.normal(size=dim) * 100
    parts = [Moments.of(torch.from_numpy(part)) for part in np.split(rows, np.cumsum(sizes)[:-1])]
    forward = parts[0]
    for part in parts[1:]:
        forward = forward.merge(part)
    backward = parts[-1]
    for part in parts[-2::-1]:
        backward = part.merge(backward)  # the other way to set the brackets
    order = [parts[i] for i in rng.permutation(len(parts))]
    shuffled = order[0]
    for part in order[1:]:
        shuffled = part.merge(shuffled)
    for merged in (forward, backward, shuffled):
        assert_moments(merged, rows)
    if len(rows) > 1:
        np.testing.assert_allclose(forward.covariance, np.atleast_2d(np.cov(rows, rowvar=False)), atol=1e-7)


def test_moments_of_no_rows():
    empty = Moments.of(torch.zeros(0, 2))
    assert empty.merge(empty).count == 0
    assert torch.equal(empty.merge(empty).mean, torch.zeros(2, dtype=torch.float64))


def test_moments_are_float64_and_detached():
    rows = (1e4 + normal(1000, 2)).float().requires_grad_()
    moments = Moments.of(rows)
    assert moments.mean.dtype == moments.scatter.dtype == torch.float64 and not moments.mean.requires_grad
    assert_moments(moments, rows.detach().double().numpy())


def test_batch_covariance_is_numpys():
    h = normal(50, 3) + 5
    mean, covariance = batch_covariance(h)
    np.testing.assert_allclose(mean, h.numpy().mean(0))
    np.testing.assert_allclose(covariance, np.cov(h.numpy(), rowvar=False))


def slow_epps_pulley(samples: np.ndarray, knots: int, limit: float) -> np.ndarray:
    """n ∫ |φ̂ − φ|² φ dt by the trapezoid rule on all of [−limit, limit], one column and one t at a time."""
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
    """The straightforward tensor form, for autograd to differentiate."""
    t = torch.linspace(0, limit, knots, dtype=samples.dtype)
    angle = t[:, None, None] * samples
    target = torch.exp(-t.square() / 2)[:, None]
    gap = (angle.cos().mean(1) - target).square() + angle.sin().mean(1).square()
    return 2 * len(samples) * torch.trapezoid(gap * target, t, dim=0)


@pytest.mark.parametrize(("knots", "limit"), [(17, 3.0), (2, 3.0), (3, 1.0), (33, 5.0)])
def test_epps_pulley_is_its_definition(knots: int, limit: float):
    samples = normal(23, 4) * torch.tensor([0.1, 1.0, 3.0, 40.0], dtype=torch.float64) + 0.3
    expected = slow_epps_pulley(samples.numpy(), knots, limit)
    np.testing.assert_allclose(epps_pulley(samples, knots, limit), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(plain_epps_pulley(samples, knots, limit), expected, rtol=1e-10, atol=1e-12)


def test_epps_pulley_gradient():
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
    """The job of the next test: `sizes` says how many rows each process has for its moments."""
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
def test_statistics_over_processes_are_those_of_the_joint_batch():
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


def mean_of(x: np.ndarray):
    return lambda weights: {"mean": weights @ x / len(x)}


def test_bootstrap_covers_a_known_mean():
    """Of 200 intervals at 95%, between 181 and 197 should cover: the 99.7% range of the binomial."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        estimate = bootstrap(mean_of(rng.normal(3.0, 2.0, 100)), 100, rng, replicates=300)["mean"]
        covered += estimate.low <= 3.0 <= estimate.high
        assert estimate.low < estimate.value < estimate.high and estimate.n == 100
    assert 181 <= covered <= 197


def test_bootstrap_width_is_that_of_the_normal_theory():
    x = np.random.default_rng(1).normal(size=400)
    for level, z in ((0.95, 1.96), (0.8, 1.2816)):
        estimate = bootstrap(mean_of(x), 400, np.random.default_rng(2), replicates=4000, level=level)["mean"]
        assert estimate.high - estimate.low == pytest.approx(2 * z * x.std() / 20, rel=0.06)


def test_bootstrap_by_group_does_not_take_copies_for_samples():
    x = np.random.default_rng(0).normal(size=60)
    copies, groups = np.repeat(x, 10), np.repeat([f"id{i}" for i in range(60)], 10)
    shuffled = np.random.default_rng(1).permutation(600)

    def width(data: np.ndarray, labels: np.ndarray | None) -> float:
        rng = np.random.default_rng(2)
        estimate = bootstrap(mean_of(data), len(data), rng, groups=labels, replicates=2000)["mean"]
        return estimate.high - estimate.low

    honest = width(x, None)
    assert width(copies[shuffled], groups[shuffled]) == pytest.approx(honest, rel=0.08)
    assert width(copies, None) == pytest.approx(honest / math.sqrt(10), rel=0.08)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40).filter(lambda g: len(set(g)) > 1), st.integers(0, 99))
@settings(max_examples=50)
def test_bootstrap_weights(labels, seed):
    groups, seen = np.array(labels), []

    def record(weights: np.ndarray) -> dict[str, float]:
        seen.append(weights)
        return {"sum": weights.sum(), "first": weights[0]}

    result = bootstrap(record, len(groups), np.random.default_rng(seed), groups=groups, replicates=20)
    assert len(seen) == 21 and np.array_equal(seen[0], np.ones(len(groups)))
    for weights in seen:
        assert weights.shape == groups.shape and (weights >= 0).all()
        assert weights.sum() == pytest.approx(len(groups))
        assert all(len(set(weights[groups == group])) == 1 for group in set(labels))
    assert result["sum"].low == pytest.approx(len(groups)) and result["first"].value == 1
    plain = []
    bootstrap(lambda w: plain.append(w) or {"x": 0.0}, 7, np.random.default_rng(seed), replicates=20)
    assert all(w.sum() == 7 and np.array_equal(w, np.round(w)) for w in plain)


def test_bootstrap_is_reproducible_and_keeps_undefined_values():
    x = np.random.default_rng(0).normal(size=30)
    a, b = (bootstrap(mean_of(x), 30, np.random.default_rng(5), replicates=50) for _ in range(2))
    assert a == b
    assert a != bootstrap(mean_of(x), 30, np.random.default_rng(6), replicates=50)
    undefined = bootstrap(lambda w: {"x": math.nan if w[0] == 0 else 1.0}, 30, np.random.default_rng(5))["x"]
    assert undefined.value == 1.0 and math.isnan(undefined.low) and math.isnan(undefined.high)


def test_bootstrap_refuses_what_says_nothing_about_spread():
    with pytest.raises(InputError, match="2 groups"):
        bootstrap(mean_of(np.ones(4)), 4, np.random.default_rng(0), groups=np.zeros(4))
    with pytest.raises(InputError, match=r"groups.*4 rows.*3"):
        bootstrap(mean_of(np.ones(4)), 4, np.random.default_rng(0), groups=np.arange(3))


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_is_that_of_scipy(ties: bool):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40))
    y = x + y
    if ties:
        x, y = x.round(), y.round()
    assert spearman(x, y).value == pytest.approx(scipy.stats.spearmanr(x, y)[0], abs=1e-10)


def test_the_interval_of_a_rank_correlation_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    correlation = 0.6
    truth = 6 / np.pi * np.arcsin(correlation / 2)  # Spearman's, of a Gaussian pair
    covered = 0
    for _ in range(400):
        x, noise = rng.standard_normal((2, 30))
        found = spearman(x, correlation * x + np.sqrt(1 - correlation**2) * noise)
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / 400 <= 0.98


def test_spearman_refuses_what_has_no_order():
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).value)
    with pytest.raises(InputError, match="pairs"):
        spearman(np.ones(1), np.ones(1))


def test_a_statistic_first_taken_in_inference_mode_can_be_differentiated_later():
    knots = 29  # asked for nowhere else
    with torch.inference_mode():
        epps_pulley(torch.randn(50, 2), knots)
    samples = torch.randn(50, 2, requires_grad=True)
    epps_pulley(samples, knots).sum().backward()
    assert samples.grad is not None and samples.grad.isfinite().all()
