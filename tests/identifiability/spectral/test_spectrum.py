"""Spectra of worlds with known ladders, and invariances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.linear import least_squares, r2
from jepatlas.identifiability import Spectrum, SpectrumSettings, fit_spectral_encoder, spectrum
from jepatlas.identifiability.spectral.pair_rows import SplitPairs
from jepatlas.worlds import Spiral

QUICK = SpectrumSettings(
    features=64, functions=6, length_scales=(0.5, 1.0, 2.5), ridges=(1e-5, 1e-3, 1e-1), pilot=3000, replicates=100
)


def gaussian(rows: int, rates: list[float], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, len(rates)))
    rho = np.array(rates)
    return z, rho * z + np.sqrt(1 - rho**2) * noise


def turn(dim: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(7).standard_normal((dim, dim)))[0]


def spiral(z: np.ndarray) -> np.ndarray:
    return Spiral()(torch.from_numpy(z)).numpy()


def recovered(encode: Callable[[np.ndarray], np.ndarray], observe: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """R² of the state from the latents, on states not used in the fit."""
    z = np.random.default_rng(99).standard_normal((4000, n))
    h = encode(observe(z))
    return r2(z[2000:], least_squares(h[:2000], z[:2000]).apply(h[2000:]))


@pytest.mark.slow
def test_spiral_is_inverted():
    z, z_next = gaussian(20_000, [0.95, 0.95])
    found = spectrum(spiral(z), spiral(z_next))
    assert found.ladder.dim == 2
    assert found.ladder.second is not None and found.ladder.second.value == pytest.approx(0.9025, abs=0.02)
    for rate in found.rates:
        assert rate.value == pytest.approx(0.95, abs=0.007)
        assert rate.high >= 0.946
    assert recovered(found.encoder.apply, spiral, 2) > 0.98
    encoder = fit_spectral_encoder(spiral(z), spiral(z_next), 2)
    assert recovered(encoder.apply, spiral, 2) > 0.985


def warp(z: np.ndarray) -> np.ndarray:
    return np.tanh(z @ turn(z.shape[1])) @ turn(z.shape[1])


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("warped", [False, True])
def test_dimension_and_rho_of_mixed_gaussian_worlds(n: int, *, warped: bool):
    def observe(z: np.ndarray) -> np.ndarray:
        return warp(z) if warped else z @ turn(n)

    z, z_next = gaussian(10_000, [0.9] * n)
    found = spectrum(observe(z), observe(z_next), settings=SpectrumSettings(features=256, pilot=5000))
    assert found.ladder.dim == n
    assert found.ladder.second is not None and found.ladder.second.value == pytest.approx(0.81, abs=0.03)
    for rate in found.rates:  # functions of the warped world are approximate, so their rates are slightly low
        assert rate.low - (0.03 if warped else 0.005) < rate.value < 0.9 + 0.02
        assert rate.value == pytest.approx(0.9, abs=0.03 if warped else 0.015)
    assert recovered(found.encoder.apply, observe, n) > (0.88 if warped else 0.995)


@pytest.mark.parametrize(("rates", "directions"), [([0.9, 0.85], (0, 1)), ([0.9, 0.76], (0, 2))])
def test_distinct_rates_inside_and_outside_the_window(rates: list[float], directions: tuple[int, ...]):
    """Inside the window, and outside (.76 < .9² = .81), where a harmonic precedes the second direction."""
    z, z_next = gaussian(12_000, rates)
    found = spectrum(z @ turn(2), z_next @ turn(2), settings=QUICK)
    assert found.ladder.dim == 2
    assert found.ladder.directions == directions
    np.testing.assert_allclose([rate.value for rate in found.rates], rates, atol=0.02)
    h = found.encoder.apply(z @ turn(2))
    assert np.abs(np.corrcoef(h.T, z.T)[:2, 2:]).diagonal().min() > 0.95  # one latent per coordinate


def test_ladder_of_a_gaussian_world():
    z, z_next = gaussian(20_000, [0.8, 0.8])
    found = spectrum(z, z_next, settings=QUICK)
    expected = [0.8, 0.8, 0.64, 0.64, 0.64]
    for estimate, value in zip(found.eigenvalues, expected, strict=False):
        assert estimate.low - 0.015 < value < estimate.high + 0.015
        assert estimate.value == pytest.approx(value, abs=0.035)


def pieces(found: Spectrum, x: np.ndarray) -> tuple[np.ndarray, ...]:
    numbers = [(e.value, e.low, e.high) for e in (*found.eigenvalues, *found.rates)]
    return np.array(numbers), found.encoder.apply(x), np.array([found.ridge, found.length_scale])


def test_result_is_deterministic_by_seed():
    z, z_next = gaussian(3000, [0.9])
    first, second, other = (spectrum(z, z_next, settings=QUICK, seed=seed) for seed in (1, 1, 2))
    for a, b in zip(pieces(first, z), pieces(second, z), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first.encoder.features.frequencies, other.encoder.features.frequencies)
    assert first.eigenvalues != other.eigenvalues


def test_too_small_ridge_is_not_selected():
    """With tiny ridges only, fitted values are spurious and far above ρ; larger ridges are selected if available."""
    z, z_next = gaussian(2500, [0.8, 0.8])
    x, x_next = spiral(z / 2), spiral(z_next / 2)
    shared = {"features": 400, "functions": 4, "length_scales": (0.2, 0.7), "replicates": 100}
    greedy = spectrum(x, x_next, settings=SpectrumSettings(ridges=(1e-12,), **shared))
    chosen = spectrum(x, x_next, settings=SpectrumSettings(ridges=(1e-12, 1e-4, 1e-2), **shared))
    assert max(greedy.fitted) > 0.9  # ρ is 0.8
    assert greedy.eigenvalues[0].value < 0.7  # and the held-out score shows it
    assert greedy.ladder.dim is None
    assert max(chosen.fitted) < 0.83
    assert chosen.eigenvalues[0].value == pytest.approx(0.8, abs=0.04)
    assert chosen.ridge > 1e-6


def test_irreversible_pairs_are_reported():
    z, noise = np.random.default_rng(0).standard_normal((2, 6000, 2))
    cosine, sine = np.cos(0.4), np.sin(0.4)
    z_next = 0.9 * z @ np.array([[cosine, sine], [-sine, cosine]]) + np.sqrt(1 - 0.81) * noise
    found = spectrum(z, z_next, settings=QUICK)
    assert found.reversibility.passed is False
    assert found.rates[0].value == pytest.approx(0.9 * cosine, abs=0.02)  # not 0.9, in line with the advice
    assert spectrum(*gaussian(6000, [0.9, 0.9]), settings=QUICK).reversibility.passed is True


def test_uninformative_columns_are_ignored():
    z, z_next = gaussian(4000, [0.9, 0.9])
    padded = [np.c_[view, np.full(4000, 5.0), view[:, 0]] for view in (z, z_next)]
    plain, found = spectrum(z, z_next, settings=QUICK), spectrum(*padded, settings=QUICK)
    assert len(found.encoder.features.whitening.weight) == 2
    np.testing.assert_allclose([r.value for r in found.rates], [r.value for r in plain.rates], atol=0.01)


def test_independent_noise_in_each_view_is_ignored():
    rng = np.random.default_rng(3)
    views = [np.c_[view, rng.standard_normal((8000, 3))] for view in gaussian(8000, [0.9, 0.9])]
    assert spectrum(*views, settings=QUICK).ladder.dim == 2


def test_heavy_tails_do_not_dominate():
    """Without normal scores, functions would fit only a few outlying rows of exp(2z)."""
    z, z_next = gaussian(6000, [0.9])
    found = spectrum(np.exp(2 * z), np.exp(2 * z_next), settings=QUICK)
    assert found.ladder.dim == 1
    assert found.encoder.features.quantiles is not None
    assert found.rates[0].value == pytest.approx(0.9, abs=0.015)
    assert recovered(found.encoder.apply, lambda z: np.exp(2 * z), 1) > 0.99
    assert spectrum(z, z_next, settings=QUICK).encoder.features.quantiles is None  # Gaussian already


def test_few_pairs_are_undecided():
    z, z_next = gaussian(200, [0.95, 0.95])
    assert spectrum(spiral(z), spiral(z_next), settings=QUICK).ladder.dim is None


def test_independent_pairs_have_no_spectrum():
    z, z_next = gaussian(3000, [0.0, 0.0])
    found = spectrum(z, z_next, settings=QUICK)
    assert found.ladder.dim is None
    assert found.eigenvalues[0].low < 0.05


def test_width_can_be_given():
    z, z_next = gaussian(2000, [0.9, 0.9])
    found = spectrum(z, z_next, dim=4, settings=QUICK)
    assert found.encoder.dim == len(found.rates) == found.encoder.apply(z).shape[1] == 4


def test_latents_are_white_and_ordered_from_slow_to_fast():
    z, z_next = gaussian(4000, [0.9, 0.7, 0.5])
    encoder = fit_spectral_encoder(np.exp(z), np.exp(z_next), 3, settings=QUICK)
    both = np.concatenate([encoder.apply(np.exp(z)), encoder.apply(np.exp(z_next))])
    np.testing.assert_allclose(np.cov(both.T, bias=True), np.eye(3), atol=1e-6)
    assert list(encoder.rates) == sorted(encoder.rates, reverse=True)


def test_integers_and_float32_are_accepted():
    z, z_next = gaussian(2000, [0.9])
    coarse = [(view * 10).astype(np.int32) for view in (z, z_next)]
    assert spectrum(*coarse, settings=QUICK).rates[0].value == pytest.approx(0.9, abs=0.03)
    assert spectrum(*(v.astype(np.float32) for v in (z, z_next)), settings=QUICK).rates[0].value == pytest.approx(
        0.9, abs=0.03
    )


def test_few_distinct_values_are_accepted():
    z, z_next = gaussian(2000, [0.9])
    found = spectrum(np.sign(z), np.sign(z_next), settings=QUICK)
    assert len(found.eigenvalues) == 1  # a sign has only one non-constant function
    assert found.eigenvalues[0].value == pytest.approx(2 / np.pi * np.arcsin(0.9), abs=0.05)


@pytest.mark.parametrize("dim", [0, 1000])
def test_impossible_width_is_rejected(dim: int):
    with pytest.raises(InputError, match=rf"functions.* {dim}\."):
        spectrum(*gaussian(500, [0.9]), dim=dim, settings=QUICK)


def test_nan_is_rejected():
    z, z_next = gaussian(500, [0.9])
    z_next[3] = np.nan
    with pytest.raises(InputError, match="NaN"):
        spectrum(z, z_next)


@pytest.mark.parametrize("bad", [{"functions": 0}, {"ridges": ()}, {"ridges": (0.0,)}, {"length_scales": (-1.0,)}])
def test_invalid_settings_are_rejected(bad: dict):
    with pytest.raises(InputError, match=next(iter(bad))):
        SpectrumSettings(**bad)


def test_weights_give_the_spectrum_of_the_weighted_world():
    """Pairs of two worlds in one array, selected by weights only."""
    slow, fast = gaussian(4000, [0.9]), gaussian(4000, [0.5], seed=1)
    x, x_next = (np.concatenate(views) for views in zip(slow, fast, strict=True))
    for weights, rho in ((np.repeat([1.0, 1e-9], 4000), 0.9), (np.repeat([1e-9, 1.0], 4000), 0.5)):
        found = spectrum(x, x_next, weights=weights, settings=QUICK)
        assert found.rates[0].value == pytest.approx(rho, abs=0.03)
        encoder = fit_spectral_encoder(x, x_next, 1, weights=weights, settings=QUICK)
        assert encoder.rates[0] == pytest.approx(rho, abs=0.03)


def test_equal_weights_match_no_weights():
    x, x_next = gaussian(2000, [0.9, 0.8])
    plain, weighed = (fit_spectral_encoder(x, x_next, 2, weights=w, settings=QUICK) for w in (None, np.full(2000, 3.0)))
    np.testing.assert_allclose(plain.rates, weighed.rates, rtol=1e-9)
    np.testing.assert_allclose(plain.apply(x), weighed.apply(x), atol=1e-6)


def test_minimum_number_of_groups():
    """Most blocks of the selection rows then contain no group."""
    x, x_next = gaussian(4000, [0.9, 0.9])
    assert spectrum(x, x_next, groups=np.arange(4000) // 500, settings=QUICK).ladder.dim == 2


def test_weights_without_rows_to_fit_are_rejected():
    x, x_next = gaussian(2000, [0.9])
    places = np.concatenate([rows.place for rows in SplitPairs(x, x_next)])
    with pytest.raises(InputError, match="weights"):
        spectrum(x, x_next, weights=(places > 0.75).astype(float), settings=QUICK)
