"""Nonlinear estimate of ρ for the bound: not the latents' own correlation, and an upper limit."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.linear import procrustes, whitener
from jepatlas.identifiability import SpectrumSettings, bound_terms, nonlinear_rho

QUICK = SpectrumSettings(features=100, length_scales=(0.5, 1.0, 2.5), ridges=(1e-6, 1e-4, 1e-2), replicates=200)


def gaussian(rows: int, n: int, rho: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, n))
    return z, rho * z + np.sqrt(1 - rho**2) * noise


def own_correlation(h: np.ndarray, h_next: np.ndarray) -> float:
    both = np.concatenate([h, h_next])
    total = np.trace(np.atleast_2d(np.cov(both.T, bias=True)))
    return float(1 - np.square(h - h_next).sum(1).mean() / (2 * total))


def scrambled(z: np.ndarray, white: bool = True) -> np.ndarray:
    """An injective map far from linear."""
    h = np.c_[z[:, :1] + np.sin(3 * z[:, 1:]), z[:, 1:]]
    return whitener(h).apply(h) if white else h


def test_own_correlation_of_latents_makes_delta_zero_for_any_latents():
    z, z_next = gaussian(4000, 2, 0.9)
    h, h_next = scrambled(z, white=False), scrambled(z_next, white=False)
    assert bound_terms(h, h_next, own_correlation(h, h_next))["delta"] == pytest.approx(0, abs=1e-12)
    assert own_correlation(h, h_next) < 0.85


def test_scrambled_latents_are_not_certified():
    z, z_next = gaussian(12_000, 2, 0.9)
    h, h_next = scrambled(z), scrambled(z_next)
    rho = nonlinear_rho(h, h_next, settings=QUICK)
    assert own_correlation(h, h_next) + 0.05 < rho.value < 0.91
    assert rho.high == pytest.approx(0.9, abs=0.015)
    error = np.square(h - procrustes(z, h).apply(z)).sum(1).mean()
    assert bound_terms(h, h_next, rho.high)["bound"] > error > 0.3


@pytest.mark.parametrize("n", [1, 3])
def test_upper_limit_exceeds_rho_for_rotations(n: int):
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    for seed in range(4):
        z, z_next = gaussian(5000, n, 0.9, seed)
        rho = nonlinear_rho(z @ turn, z_next @ turn, settings=QUICK, seed=seed)
        assert rho.low < 0.9
        assert 0.9 - 0.002 < rho.high < 0.93
        assert rho.low <= rho.value <= rho.high


def test_rotation_is_certified_with_enough_pairs():
    z, z_next = gaussian(40_000, 2, 0.9)
    rho = nonlinear_rho(z, z_next, settings=QUICK)
    assert bound_terms(z, z_next, rho.high)["bound"] < 0.2  # a tenth of the state's variance


def test_poor_fit_gives_a_vacuous_but_valid_limit():
    z, z_next = gaussian(300, 12, 0.8)
    rho = nonlinear_rho(z, z_next, settings=QUICK)
    assert rho.high > 0.8 + 0.05
    assert rho.high < 1


def test_rho_is_underestimated_if_latents_lose_information():
    """h = z² − 1 keeps only ρ²; the observations still determine ρ."""
    z, z_next = gaussian(8000, 1, 0.9)
    assert nonlinear_rho(z**2 - 1, z_next**2 - 1, settings=QUICK).high < 0.86
    assert nonlinear_rho(np.exp(z), np.exp(z_next), settings=QUICK).high > 0.895


def test_groups_are_held_out_whole():
    z, z_next = gaussian(500, 1, 0.9)
    many = np.repeat(z, 10, axis=0), np.repeat(z_next, 10, axis=0)
    grouped = nonlinear_rho(*many, groups=np.repeat(np.arange(500), 10), settings=QUICK)
    assert grouped.n == 1250  # a quarter of the groups
    assert grouped.low < 0.9 < grouped.high
