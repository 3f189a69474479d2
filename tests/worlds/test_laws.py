"""The contract of all laws, and properties of each law."""

import dataclasses
import math
import re
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jepatlas.core.contracts import Law
from jepatlas.core.errors import InputError
from jepatlas.identifiability import sturm_liouville_generalised_normal
from jepatlas.worlds import (
    AdditiveGeneralisedNormal,
    AnyLaw,
    BoundedWalk,
    CopulaGeneralisedNormal,
    LangevinGeneralisedNormal,
    OrnsteinUhlenbeck,
    UniformWalk,
)
from jepatlas.worlds.generalised_normal import from_gaussian, to_gaussian

LAWS: list[Law] = [
    *(cls() for cls in get_args(AnyLaw)),
    OrnsteinUhlenbeck(3, (0.9, 0.5, 0.0)),
    AdditiveGeneralisedNormal(2, 0.7, alpha=8.0),
    CopulaGeneralisedNormal(2, (0.95, 0.3), alpha=0.5),
    CopulaGeneralisedNormal(2, 0.8, alpha=32.0),
    LangevinGeneralisedNormal(2, (0.95, 0.8), alpha=1.0),
    LangevinGeneralisedNormal(1, 0.9, alpha=32.0),
    UniformWalk(1, step=3.0),
    BoundedWalk(5, step=0.5),
]
ALPHAS = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16, 32]

every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def walk(law: Law, steps: int, count: int = 20_000) -> torch.Tensor:
    source = generator()
    z = law.states(count, source)
    for _ in range(steps):
        z = law.transition(z, source)
    return z


def marginal(law: Law):
    """The stationary distribution of one coordinate, from scipy; None if it is not known."""
    if isinstance(law, CopulaGeneralisedNormal | LangevinGeneralisedNormal):
        return stats.gennorm(law.alpha, scale=1 / stats.gennorm(law.alpha).std())
    if isinstance(law, BoundedWalk):
        # A coordinate of the uniform distribution on the n-ball is a scaled Beta((n+1)/2, (n+1)/2).
        half = (law.dim + 1) / 2
        return stats.beta(half, half, loc=-law.radius, scale=2 * law.radius)
    if isinstance(law, UniformWalk):
        return stats.uniform(-math.sqrt(3), 2 * math.sqrt(3))
    return stats.norm() if law.gaussian else None


@every_law
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shapes_and_dtypes(law: Law, dtype: torch.dtype):
    z = law.states(7, generator())
    assert z.shape == (7, law.dim) and z.dtype == torch.get_default_dtype()
    z_next = law.transition(z.to(dtype), generator())
    assert z_next.shape == z.shape and z_next.dtype == dtype and z_next.isfinite().all()


@every_law
def test_same_generator_same_bits(law: Law):
    z, again, other = (law.states(50, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(z, again) and not torch.equal(z, other)
    assert torch.equal(law.transition(z, generator(3)), law.transition(z, generator(3)))


@every_law
def test_zero_mean_and_unit_covariance_before_and_after(law: Law):
    for z in (walk(law, 0, 50_000), walk(law, 2, 50_000)):
        assert z.mean(0).abs().max() < 0.03
        torch.testing.assert_close(z.T.cov().reshape(law.dim, -1), torch.eye(law.dim), atol=0.04, rtol=0)


@every_law
def test_measured_correlation_is_the_declared_one(law: Law):
    if law.correlation is None:
        assert isinstance(law, BoundedWalk | LangevinGeneralisedNormal)
        return
    z = walk(law, 0, 50_000)
    z_next = law.transition(z, generator(1))
    measured = [np.corrcoef(z[:, i], z_next[:, i])[0, 1] for i in range(law.dim)]
    np.testing.assert_allclose(measured, law.correlation, atol=0.012)


@every_law
def test_stationary_laws_keep_their_marginal(law: Law):
    truth = marginal(law)
    if truth is None:
        assert isinstance(law, AdditiveGeneralisedNormal)
        return
    for steps in (0, 5):
        z = walk(law, steps)
        for i in range(law.dim):
            assert stats.kstest(z[:, i].double().numpy(), truth.cdf).pvalue > 1e-3


@every_law
def test_kind_is_kebab_case_and_dim_is_checked(law: AnyLaw):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", law.kind)
    with pytest.raises(InputError, match="dim is 0"):
        dataclasses.replace(law, dim=0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 8.0])
def test_additive_noise_changes_the_density_unless_gaussian(alpha: float):
    law = AdditiveGeneralisedNormal(1, 0.7, alpha)
    truth = stats.gennorm(alpha, scale=1 / stats.gennorm(alpha).std())
    assert stats.kstest(walk(law, 0)[:, 0].double().numpy(), truth.cdf).pvalue > 1e-3
    assert stats.kstest(walk(law, 5)[:, 0].double().numpy(), truth.cdf).pvalue < 1e-6
    assert not law.gaussian and AdditiveGeneralisedNormal(1, 0.7, 2.0).gaussian


@pytest.mark.parametrize("alpha", ALPHAS)
def test_additive_states_have_the_generalised_normal_density(alpha: float):
    z = AdditiveGeneralisedNormal(1, 0.5, alpha).states(20_000, generator())[:, 0]
    truth = stats.gennorm(alpha, scale=1 / stats.gennorm(alpha).std())
    assert stats.kstest(z.double().numpy(), truth.cdf).pvalue > 1e-3
    assert (z != 0).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_warp_is_accurate_from_centre_to_tail(alpha: float):
    size = np.concatenate([[1e-12, 1e-6, 1e-3], np.linspace(0.01, 36, 500)])
    u = np.concatenate([-size[::-1], size])
    z = from_gaussian(u, alpha)
    assert (np.diff(z) >= 0).all()
    np.testing.assert_allclose(to_gaussian(z, alpha), u, rtol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_warp_agrees_with_scipy_gennorm(alpha: float):
    truth = stats.gennorm(alpha, scale=1 / stats.gennorm(alpha).std())
    # scipy gives P(Z > z) without cancellation for z > 0, and P(Z < z) for z < 0.
    u = np.linspace(0.1, 8, 200)
    z = from_gaussian(u, alpha)
    np.testing.assert_allclose(truth.sf(z), stats.norm.sf(u), rtol=1e-9)
    np.testing.assert_allclose(truth.cdf(-z), stats.norm.cdf(-u), rtol=1e-9)


def test_copula_with_alpha_two_is_ornstein_uhlenbeck():
    copula, law = CopulaGeneralisedNormal(2, 0.9, alpha=2.0), OrnsteinUhlenbeck(2, 0.9)
    z = law.states(500, generator()).double()
    torch.testing.assert_close(copula.transition(z, generator(1)), law.transition(z, generator(1)), atol=1e-12, rtol=0)
    torch.testing.assert_close(copula.to_gaussian(z), z, atol=1e-12, rtol=0)
    assert copula.gaussian and copula.correlation == (0.9, 0.9)


@pytest.mark.parametrize(("alpha", "rho", "tolerance"), [(4.0, 0.95, 1e-6), (32.0, 0.5, 1e-5), (1.0, 0.8, 1e-4)])
def test_copula_correlation_against_a_grid_over_the_bivariate_normal(alpha: float, rho: float, tolerance: float):
    truth = stats.gennorm(alpha, scale=1 / stats.gennorm(alpha).std())
    u, step = np.linspace(-8, 8, 161, retstep=True)
    mass = stats.norm.pdf(u) * step
    u_next = rho * u[:, None] + math.sqrt(1 - rho**2) * u
    z, z_next = (np.sign(v) * truth.isf(stats.norm.sf(np.abs(v))) for v in (u, u_next))
    expected = mass @ (z[:, None] * z_next) @ mass
    assert CopulaGeneralisedNormal(1, rho, alpha).correlation[0] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("law", [CopulaGeneralisedNormal(1, 0.8, 0.5), UniformWalk(1, 0.8), OrnsteinUhlenbeck(1, 0.7)])
def test_correlation_after_several_steps(law: AnyLaw):
    source = generator()
    z = z_later = law.states(100_000, source)
    for _ in range(3):
        z_later = law.transition(z_later, source)
    after = law.correlation_after(3)
    assert after is not None and law.correlation_after(1) == law.correlation
    assert np.corrcoef(z[:, 0], z_later[:, 0])[0, 1] == pytest.approx(after[0], abs=0.015)


@pytest.mark.parametrize("alpha", [1.5, 4.0, 32.0])
def test_langevin_motion_has_the_eigenfunction_and_the_rate_of_its_generator(alpha: float):
    """Corr(f(z), f(z')) = exp(−λ t) for the first eigenfunction f, and no less for any function."""
    law = LangevinGeneralisedNormal(1, 0.8, alpha)
    solved = sturm_liouville_generalised_normal(alpha, 1)
    z = law.states(100_000, generator())
    z_next = law.transition(z, generator(1))
    first, shape = (
        np.corrcoef(f(z[:, 0].double().numpy()), f(z_next[:, 0].double().numpy()))[0, 1] for f in (solved.warp, np.sign)
    )
    assert first == pytest.approx(0.8 ** solved.eigenvalues[0], abs=0.008)
    assert shape < first - 0.05


@settings(deadline=None)
@given(step=st.floats(0.01, 100), seed=st.integers(0, 1000))
def test_walks_stay_in_their_region(step: float, seed: int):
    for law, size in ((UniformWalk(3, step), torch.abs), (BoundedWalk(3, step), lambda z: z.norm(dim=-1))):
        z = law.transition(law.states(20, generator(seed)), generator(seed + 1))
        limit = law.radius if isinstance(law, BoundedWalk) else math.sqrt(3)
        assert (size(z) <= limit + 1e-5).all()


def test_correlation_falls_with_the_step():
    assert UniformWalk(1, 50.0).correlation[0] == pytest.approx(0, abs=1e-12)
    assert UniformWalk(1, 1e-4).correlation[0] == pytest.approx(1, abs=1e-6)


def test_bounded_walk_has_dependent_coordinates():
    z = walk(BoundedWalk(2), 5)
    assert np.corrcoef(z[:, 0] ** 2, z[:, 1] ** 2)[0, 1] < -0.2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: OrnsteinUhlenbeck(2, 1.0), r"rho is 1\.0"),
        (lambda: OrnsteinUhlenbeck(2, (0.5, -0.1)), r"rho is \(0\.5, -0\.1\)"),
        (lambda: OrnsteinUhlenbeck(2, math.nan), "rho is nan"),
        (lambda: OrnsteinUhlenbeck(2, (0.5, 0.5, 0.5)), "rho.* 3.*dim is 2"),
        (lambda: AdditiveGeneralisedNormal(alpha=0.1), r"alpha is 0\.1"),
        (lambda: CopulaGeneralisedNormal(alpha=33.0), r"alpha is 33\.0"),
        (lambda: UniformWalk(step=0.0), r"step is 0\.0"),
        (lambda: BoundedWalk(step=math.inf), "step is inf"),
    ],
)
def test_invalid_arguments_are_refused(build, message: str):
    with pytest.raises(InputError, match=message):
        build()
