"""The dynamics in the latent, against plain regressions and maps whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from gaussian_worlds import paired_quadrature, pairs, psi, rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out
from jepatlas.core.records import Estimate
from jepatlas.identifiability import latent_dynamics


def read(h: np.ndarray, h_next: np.ndarray, rho: float, replicates: int = 2, **options) -> dict[str, Estimate]:
    split = hold_out(len(h), np.random.default_rng(1), groups=options.get("groups"))
    return latent_dynamics(h, h_next, rho, split, np.random.default_rng(2), replicates=replicates, **options)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_against_plain_regressions(dim: int):
    z, z_next = pairs(400, dim, 0.7)
    h, h_next = (np.tanh(v @ rotation(dim)) + 0.3 * v**2 - 4 for v in (z, z_next))
    split = hold_out(400, np.random.default_rng(1))
    found = read(h, h_next, 0.7)

    def regression(rows: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(h[rows] - h[rows].mean(0), h_next[rows] - h_next[rows].mean(0), rcond=None)[0].T

    one, other = (regression(rows) - 0.7 * np.eye(dim) for rows in split)
    square = np.sum(one * other) / (dim * 0.49)
    assert found["operator_error"].value == pytest.approx(math.copysign(math.sqrt(abs(square)), square), rel=1e-7)
    fitted = (h[split.score] - h[split.fit].mean(0)) @ regression(split.fit).T + h_next[split.fit].mean(0)
    miss = h_next[split.score] - fitted
    spread = h_next[split.score] - h_next[split.score].mean(0)
    assert found["r2"].value == pytest.approx(1 - np.sum(miss**2) / np.sum(spread**2), rel=1e-7)
    assert found["r2"].n == len(split.score) == 200


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.floats(0.2, 0.97), st.integers(0, 10_000))
def test_every_linear_map_reads_rho(dim: int, rho: float, seed: int):
    """Necessary, not sufficient: M = ρI for rotations, and for shears and scalings just as well."""
    z, z_next = pairs(6000, dim, rho, seed)
    shear = rotation(dim, seed) @ np.diag(np.geomspace(0.2, 3, dim)) @ rotation(dim, seed + 1)
    for mixing in (rotation(dim, seed), shear):
        found = read(z @ mixing + 5, z_next @ mixing + 5, rho)
        assert abs(found["operator_error"].value) < 0.35 * math.sqrt(1 - rho**2) / rho + 0.02
        assert found["r2"].value == pytest.approx(rho**2, abs=0.08)
        for k in range(1, dim + 1):
            assert found[f"eigenvalue_{k}"].value == pytest.approx(rho, abs=0.08)


@pytest.mark.parametrize("degree", [2, 3])
def test_a_degree_reads_its_own_power_of_rho(degree: int):
    z, z_next = pairs(20_000, 1, 0.8)
    found = read(psi((degree,), z)[:, None], psi((degree,), z_next)[:, None], 0.8, replicates=200)
    assert found["eigenvalue_1"].low < 0.8**degree < found["eigenvalue_1"].high
    assert found["operator_error"].value == pytest.approx(1 - 0.8 ** (degree - 1), abs=0.05)
    assert found["operator_error"].low > 0.05


def test_rates_of_an_anisotropic_world_in_their_order():
    rho = np.array([0.5, 0.95, 0.8])
    z, z_next = pairs(20_000, 3, rho)
    found = read(z @ rotation(3), z_next @ rotation(3), 0.8, replicates=100)
    for k, rate in enumerate([0.95, 0.8, 0.5], 1):
        assert found[f"eigenvalue_{k}"].value == pytest.approx(rate, abs=0.02)
        assert found[f"eigenvalue_{k}"].low < found[f"eigenvalue_{k}"].high
    assert found["operator_error"].low > 0.1


@pytest.mark.parametrize("dim", [2, 20])
def test_neither_error_nor_eigenvalues_are_of_their_own_noise(dim: int):
    """120 rows: in-sample, ‖M − ρI‖ is far from 0 and the largest eigenvalue above ρ; held out, neither."""
    held, naive, top = [], [], []
    for seed in range(40):
        h, h_next = pairs(120, dim, 0.6, seed)
        found = read(h, h_next, 0.6)
        held.append(np.copysign(found["operator_error"].value ** 2, found["operator_error"].value))
        top.append(found["eigenvalue_1"].value)
        sample = np.linalg.lstsq(h[:60], h_next[:60], rcond=None)[0] - 0.6 * np.eye(dim)
        naive.append(np.sum(sample**2) / (dim * 0.36))
    assert abs(np.mean(held)) < 4 * np.std(held) / math.sqrt(40) < 0.5 * np.mean(naive)
    assert np.mean(top) == pytest.approx(0.6, abs=float(4 * np.std(top) / math.sqrt(40)))


def test_intervals_cover_the_truth():
    """h = tanh 2z, its rate by quadrature. Of 60 intervals at 95%, 57 ± 1.7 should cover."""
    rho, covered = 0.7, {"operator_error": 0, "eigenvalue_1": 0}
    z, z_next, weights = paired_quadrature(1, 80, rho)
    f, f_next = np.tanh(2 * z[:, 0]), np.tanh(2 * z_next[:, 0])
    rate = float(weights @ (f * f_next) / (weights @ f**2))
    truth = {"operator_error": 1 - rate / rho, "eigenvalue_1": rate}
    for seed in range(60):
        z, z_next = pairs(2000, 1, rho, seed)
        found = read(np.tanh(2 * z), np.tanh(2 * z_next), rho, replicates=100)
        for name, value in truth.items():
            covered[name] += found[name].low <= value <= found[name].high
    assert min(covered.values()) >= 50


def test_collapsed_dimensions_are_no_error():
    z, z_next = pairs(2000, 2, 0.8)
    constant = np.full((2000, 1), 0.8)
    found = read(np.c_[z, constant], np.c_[z_next, constant], 0.8)
    assert found["eigenvalue_2"].value == pytest.approx(0.8, abs=0.05) and math.isnan(found["eigenvalue_3"].value)
    assert found["operator_error"].value == pytest.approx(1 / math.sqrt(3), abs=0.03)
    nothing = read(np.tile(constant, 2), np.tile(constant, 2), 0.8)
    assert nothing["operator_error"].value == pytest.approx(1) and math.isnan(nothing["r2"].value)
    doubled = read(np.c_[z, z], np.c_[z_next, z_next], 0.8)
    assert doubled["eigenvalue_2"].value == pytest.approx(0.8, abs=0.05) and math.isnan(doubled["eigenvalue_3"].value)


def test_groups_widen_the_interval():
    z, z_next = (np.repeat(v, 8, axis=0) for v in pairs(200, 2, 0.5))
    groups = np.repeat(np.arange(200), 8)
    split = hold_out(1600, np.random.default_rng(1), groups=groups)

    def width(labels: np.ndarray | None) -> float:
        rng = np.random.default_rng(2)
        found = latent_dynamics(z, z_next, 0.5, split, rng, groups=labels, replicates=300)["eigenvalue_1"]
        return found.high - found.low

    assert width(groups) == pytest.approx(math.sqrt(8) * width(None), rel=0.2)


def test_bad_input():
    h, h_next = pairs(50, 2, 0.5)
    split, rng = Split(np.arange(25), np.arange(25, 50)), np.random.default_rng(0)
    for a, b, rho, message in [
        (h, h_next[:, :1], 0.5, r"same shape, but \(50, 2\) and \(50, 1\)"),
        (h, h_next[:-1], 0.5, "'h_next' has 49"),
        (h, np.where(h > 1, np.inf, h), 0.5, "'h_next' has .* NaN or infinite"),
        (h, h_next, 1.0, "between 0 and 1, but 1.0"),
    ]:
        with pytest.raises(InputError, match=message):
            latent_dynamics(a, b, rho, split, rng)
