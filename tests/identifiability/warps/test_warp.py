"""Recovery up to a rotation and a shared warp, on known warps."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_worlds import rotation
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from jepatlas.core.errors import InputError
from jepatlas.core.linear import hold_out, least_squares, whitener
from jepatlas.core.records import Estimate
from jepatlas.identifiability import (
    fit_latent_warp,
    fit_sides,
    fit_warp,
    recovery,
    sturm_liouville_generalised_normal,
    warp_recovery,
)

WARPS = {
    "identity": lambda z: z,
    "cubic": lambda z: z + z**3 / 4,
    "tanh": np.tanh,
    "exponential": lambda z: np.exp(z / 2),
    "arctangent": lambda z: np.arctan(2 * z),
}


def world(rows: int, n: int, d: int, warp, *, noise: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """z, and h = Q w(z) + noise with orthonormal columns (rows, where d < n) of Q."""
    rng = np.random.default_rng(seed)
    q = rotation(max(n, d), seed)[:d, :n]
    z = rng.standard_normal((rows, n))
    return z, warp(z) @ q.T + noise * rng.standard_normal((rows, d)) + 3


def scores(h: np.ndarray, z: np.ndarray, replicates: int = 2, **options) -> dict[str, Estimate]:
    split = hold_out(len(h), np.random.default_rng(1), groups=options.get("groups"))
    return warp_recovery(h, z, split, np.random.default_rng(2), replicates=replicates, **options)


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 2), (3, 5)])
def test_warp_is_inverted(name: str, n: int, d: int):
    z, h = world(6000, n, d, WARPS[name])
    found = {key: estimate.value for key, estimate in scores(h, z, predicted=WARPS[name]).items()}
    assert found["r2_unwarped"] > 0.995 and found["r2_inverse_warped"] > 0.995
    assert found["r2_inverse_predicted"] > 0.9999 and found["agreement"] > 0.995
    assert found["gain"] == pytest.approx(found["r2_unwarped"] - found["r2"])
    if name == "identity":
        assert found["gain"] == pytest.approx(0, abs=1e-4) and found["r2"] == pytest.approx(1)
    else:
        assert found["gain"] > 0.01 and found["r2_inverse"] < 0.99
    np.testing.assert_allclose(
        [found["r2"], found["r2_inverse"]],
        [
            recovery(h, z, hold_out(6000, np.random.default_rng(1)), np.random.default_rng(0), replicates=1)[k].value
            for k in ("r2", "r2_inverse")
        ],
    )


@pytest.mark.parametrize("name", WARPS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 2), (5, 5), (3, 2)])
def test_warp_along_latent_axes_is_inverted(name: str, n: int, d: int):
    """h = w(Qz), which is not of the form Q w(z): compared with least squares on Qz, the result of inverting w."""
    z, _ = world(4000, n, n, WARPS[name])
    straight = z @ rotation(n)[:, :d]
    h = WARPS[name](straight)
    found = {key: estimate.value for key, estimate in scores(h, z).items()}
    best = scores(straight, z)["r2"].value
    assert found["r2_unwarped_latents"] == pytest.approx(best, abs=0.005)
    assert found["r2_unwarped"] > best - 0.005 and found["gain"] == found["r2_unwarped"] - found["r2"]
    if name != "identity" and n == 5:
        assert found["r2_unwarped"] == found["r2_unwarped_latents"] > found["r2_unwarped_states"] + 0.01
        assert found["r2_unwarped"] > found["r2"] + 0.01
    fit = fit_latent_warp(h, z)
    np.testing.assert_allclose(fit.turn.weight.T @ fit.turn.weight, np.eye(d), atol=1e-9)
    assert (np.diff(fit.unwarp.y) >= 0).all() and (np.diff(fit.warp.y) >= 0).all()
    assert np.square(fit.encode(z) - h).mean() < 0.02 * h.var()


def test_side_of_the_warp_is_identified_and_inversion_leaves_a_linear_map():
    """Latents are whitened only for warps of the states, so a shear after w(z) remains detectable."""
    z, h = world(4000, 3, 3, np.exp)
    sides = {"states": h @ np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 2]]), "latents": np.exp(z @ rotation(3))}
    for side, latents in sides.items():
        fits = fit_sides(latents, z, whitener(latents))
        assert fits.better == side
        straight, states = fits.straightened(latents, z)
        left = states - least_squares(straight, states).apply(straight)
        assert np.square(left).sum() < 0.01 * np.square(states - states.mean(0)).sum()
    assert fit_sides(np.ones((4000, 2)), z).latents is None


@settings(deadline=None, max_examples=12)
@given(st.integers(2, 4), st.floats(0.2, 3), st.floats(0, 1), st.integers(0, 1000))
def test_rotation_and_curve_are_recovered(n: int, bend: float, skew: float, seed: int):
    """Random increasing warps, odd or not: Q within a degree, and w over its range."""

    def warp(z: np.ndarray) -> np.ndarray:
        return np.tanh(bend * z) + skew * np.exp(z / 3)

    z, h = world(5000, n, n, warp, seed=seed)
    fit = fit_warp(h, z)
    q = rotation(n, seed)
    assert np.abs(fit.turn.weight - q).max() < 0.02
    np.testing.assert_allclose(fit.turn.weight @ fit.turn.weight.T, np.eye(n), atol=1e-9)
    at = np.linspace(-2, 2, 41)
    learned, true = fit.warp(at), warp(at)
    np.testing.assert_allclose(learned - learned.mean(), true - true.mean(), atol=0.05 * np.ptp(true))
    assert (np.diff(fit.warp.y) >= 0).all()
    np.testing.assert_allclose(fit.encode(z), h, atol=0.3)


def test_fewer_latents_than_states():
    """d < n: h contains two mixtures of four warped coordinates. The warp is recovered, but z is not."""
    z, h = world(6000, 4, 2, np.tanh)
    found = scores(h, z, predicted=np.tanh)
    assert found["r2_inverse_warped"].value > 0.99 > found["r2_inverse"].value
    assert found["agreement"].value > 0.99 and found["r2_unwarped"].value < 0.6


@pytest.mark.parametrize("case", ["scramble", "shear", "two warps", "even"])
def test_maps_without_a_shared_warp_are_not_explained(case: str):
    z, noise = np.random.default_rng(0).standard_normal((2, 6000, 2))
    h = {
        "scramble": noise,
        "shear": z @ np.array([[1.0, 2.0], [0.0, 1.0]]),
        "two warps": np.c_[np.exp(z[:, 0]), np.tanh(4 * z[:, 1])] @ rotation(2).T,
        "even": z**2,
    }[case]
    found = scores(h, z)
    assert found["r2_inverse_warped"].value < 0.95
    if case in ("scramble", "even"):
        assert found["r2_unwarped"].value < 0.05 and found["gain"].value < 0.05
    if case == "shear":
        assert found["r2"].value > 0.999 and found["gain"].value < -0.01


def test_wrong_predicted_warp_is_detected():
    """The same latents against the correct prediction, its mirror image, and a linear one."""
    z, h = world(6000, 2, 2, lambda z: np.exp(z / 2), noise=0.05)
    right = scores(h, z, predicted=lambda z: 5 * np.exp(z / 2) + 1)  # independent of scale and shift
    wrong = scores(h, z, predicted=lambda z: -np.exp(-z / 2))
    line = scores(h, z, predicted=lambda z: z)
    inverse = "r2_inverse_predicted"
    assert right[inverse].value > 0.985 and right["agreement"].value > 0.99
    assert wrong[inverse].value < line[inverse].value < right[inverse].value - 0.05
    assert line[inverse].value == pytest.approx(line["r2_inverse"].value, abs=0.01)


def test_copula_and_langevin_worlds():
    """z = F⁻¹(Φ(u)) uniform: an encoder of u has the warp Φ⁻¹∘F; Langevin motion would have the sine of the solver."""
    u = np.random.default_rng(0).standard_normal((6000, 2))
    z = np.sqrt(3) * (2 * norm.cdf(u) - 1)
    found = scores(u @ rotation(2).T, z, predicted=lambda z: norm.ppf(np.clip(z / np.sqrt(12) + 0.5, 1e-9, 1 - 1e-9)))
    assert found["agreement"].value > 0.99 and found["gain"].low > 0.02
    law = sturm_liouville_generalised_normal(32.0)
    found = scores(law.warp(z) @ rotation(2).T, z, predicted=law.warp)
    assert found["agreement"].value > 0.999 and found["r2_inverse_predicted"].value == pytest.approx(1)


def test_intervals_cover_the_truth():
    """h = tanh z + e/4: the best R² of h is Var tanh/(Var tanh + 1/16). Of 30 intervals, 28.5 ± 1.2 should cover."""
    at, weights = np.polynomial.hermite_e.hermegauss(80)
    variance = float(weights @ np.tanh(at) ** 2 / weights.sum())
    truth, covered = variance / (variance + 1 / 16), 0
    for seed in range(30):
        z, h = world(1000, 2, 2, np.tanh, noise=0.25, seed=seed)
        split = hold_out(1000, np.random.default_rng(seed))
        found = warp_recovery(h, z, split, np.random.default_rng(seed), replicates=100)["r2_inverse_warped"]
        covered += found.low <= truth + 0.003 and found.high >= truth - 0.003
        assert found.n == 500
    assert covered >= 25


def test_groups_widen_the_interval():
    z, h = (np.repeat(v, 8, axis=0) for v in world(200, 2, 2, np.tanh, noise=0.3))
    groups = np.repeat(np.arange(200), 8)
    split = hold_out(1600, np.random.default_rng(1), groups=groups)

    def width(labels: np.ndarray | None) -> float:
        found = warp_recovery(h, z, split, np.random.default_rng(2), groups=labels, replicates=300)["r2_unwarped"]
        return found.high - found.low

    assert width(groups) == pytest.approx(np.sqrt(8) * width(None), rel=0.25)


def test_constant_latents_raise_no_error():
    z = np.random.default_rng(0).standard_normal((400, 2))
    found = scores(np.ones((400, 2)), z)
    assert found["r2_unwarped"].value <= 0.01 and np.isnan(found["r2_inverse_warped"].value)


def test_invalid_inputs_are_rejected():
    z, h = world(200, 2, 2, np.tanh)
    with pytest.raises(InputError, match="'h' has 199"):
        scores(h[:-1], z)
    with pytest.raises(InputError, match=r"'z' has .* NaN"):
        fit_warp(h, np.where(z > 2, np.nan, z))
    with pytest.raises(InputError, match="predicted"):
        scores(h, z, predicted=lambda z: np.full_like(z, np.nan))
    with pytest.raises(InputError, match="predicted"):
        scores(h, z, predicted=lambda z: z[:, :1])
    with pytest.raises(InputError, match="'z'"):
        fit_warp(h, np.ones_like(z))
    with pytest.raises(InputError, match="'h'"):
        fit_latent_warp(np.ones_like(h), z)
