"""Jacobians against closed forms; the Dirichlet energy as the limit of the loss, and its lower bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gaussian_worlds import Polynomial, psi, quadrature, rotation
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate
from jepatlas.identifiability import dirichlet_floor, jacobian_geometry, jacobians, singular_values


def gaussian(rows: int, dim: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((rows, dim)))


def geometry(function, z: Tensor, replicates: int = 2) -> dict[str, Estimate]:
    return jacobian_geometry(jacobians(function, z), np.random.default_rng(0), replicates=replicates)


def spiral(angle):
    """R(angle(‖z‖)) z: it keeps the radius and turns, so it keeps every rotation-invariant measure of the plane."""

    def function(z: Tensor) -> Tensor:
        turn = angle(torch.linalg.vector_norm(z, dim=1, keepdim=True))
        x, y = z[:, :1], z[:, 1:]
        return torch.cat([torch.cos(turn) * x - torch.sin(turn) * y, torch.sin(turn) * x + torch.cos(turn) * y], 1)

    return function


@pytest.mark.parametrize(("dim", "out"), [(1, 1), (2, 3), (4, 2)])
def test_jacobians_of_a_network_are_its_differences(dim: int, out: int):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Linear(16, out)).double().eval()
    z = gaussian(50, dim)
    found = jacobians(net, z, batch=7)
    assert found.shape == (50, out, dim) and not found.requires_grad
    torch.testing.assert_close(found, jacobians(net, z, batch=64))
    step = 1e-6
    for i in range(dim):
        shift = step * torch.eye(dim, dtype=torch.float64)[i]
        slope = (net(z + shift) - net(z - shift)) / (2 * step)
        torch.testing.assert_close(found[:, :, i], slope, rtol=1e-6, atol=1e-8)


def test_it_works_under_vmap_and_no_grad():
    z = gaussian(5, 2)
    with torch.no_grad():
        found = jacobians(torch.sin, z)
    torch.testing.assert_close(found, torch.diag_embed(torch.cos(z)))


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 5), st.integers(0, 3), st.integers(0, 10_000))
def test_a_linear_map_has_its_own_singular_values(dim: int, extra: int, seed: int):
    matrix = np.random.default_rng(seed).standard_normal((dim + extra, dim))
    found = geometry(lambda z: z @ torch.from_numpy(matrix.T), gaussian(20, dim, seed))
    sigma = np.linalg.svd(matrix)[1]
    expected = {
        "dirichlet": np.sum(matrix**2),
        "log_volume": np.sum(np.log(sigma)),
        "isometry_defect": np.mean((sigma - 1) ** 2),
        "sigma_largest": sigma[0],
        "sigma_smallest": sigma[-1],
    }
    assert {name: estimate.value for name, estimate in found.items()} == pytest.approx(expected, rel=1e-9)


def test_a_dropped_direction_counts_as_zero():
    found = geometry(lambda z: z[:, :2], gaussian(30, 3))
    assert found["isometry_defect"].value == pytest.approx(1 / 3) and found["sigma_smallest"].value == 0
    assert found["log_volume"].value == -math.inf and found["dirichlet"].value == pytest.approx(2)
    assert singular_values(torch.ones(4, 2, 3)).shape == (4, 3)
    assert geometry(lambda z: 0 * z, gaussian(30, 3))["isometry_defect"].value == pytest.approx(1)


def slopes(index: tuple[int, ...], z: np.ndarray) -> np.ndarray:
    """∂_i ψ_k = √k_i ψ_{k − e_i}, along a last axis."""
    lower = [tuple(k - (i == j) for j, k in enumerate(index)) for i in range(len(index))]
    return np.stack([math.sqrt(index[i]) * psi(k, z) if index[i] else 0 * z[:, 0] for i, k in enumerate(lower)], 1)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 2), st.integers(0, 10_000))
def test_the_loss_tends_to_the_dirichlet_energy(dim: int, seed: int):
    """L/2(1−ρ) = Σ (1 + ρ + … + ρ^{d−1}) v_d rises to Σ d·v_d = E‖Dh‖²_F, which is equal to it only if h is linear."""
    h = Polynomial(dim, 3, 2, seed)
    z, weights = quadrature(dim, 6)
    derivative = np.einsum("kbi,kd->bdi", np.stack([slopes(k, z) for k in h.indices]), h.coefficients)
    energy = float(weights @ np.square(derivative).sum((1, 2)))
    assert energy == pytest.approx(sum(d * h.variance(d) for d in (1, 2, 3)), rel=1e-8)
    quotients = [h.loss(np.full(dim, rho)) / (2 * (1 - rho)) for rho in (0.1, 0.5, 0.9, 0.99, 1 - 1e-6)]
    assert quotients == sorted(quotients) and quotients[0] < 0.9 * energy
    assert quotients[-1] == pytest.approx(energy, rel=1e-5) and quotients[-1] < energy
    assert quotients[0] > sum(h.variance(d) for d in (1, 2, 3))
    h.coefficients[[sum(k) > 1 for k in h.indices]] = 0
    assert h.loss(np.full(dim, 0.1)) / 1.8 == pytest.approx(h.variance(1))  # linear: equal at every ρ


def test_the_limit_as_measured():
    """The same by torch on the spiral with angle r: E‖Dh‖² = 2 + E r² = 4, and pairs near ρ = 1."""
    function, rho = spiral(lambda r: r), 0.9999
    found = geometry(function, gaussian(4000, 2), replicates=200)
    assert found["dirichlet"].low < 4 < found["dirichlet"].high
    z, noise = gaussian(20_000, 2, seed=1), gaussian(20_000, 2, seed=2)
    loss = (function(z) - function(rho * z + math.sqrt(1 - rho**2) * noise)).square().sum(1).mean()
    assert float(loss) / (2 * (1 - rho)) == pytest.approx(4, rel=0.05)


@settings(deadline=None, max_examples=20)
@given(st.floats(-2, 2), st.floats(0.1, 3), st.integers(0, 10_000))
def test_maps_that_keep_the_measure_cannot_have_less_than_n(amount: float, frequency: float, seed: int):
    """Spirals, turned and chained: volume is kept at every point, and turning by φ(r) costs r²φ'²; n only without."""
    turn, z = rotation(2, seed), gaussian(100, 2, seed)
    bent = spiral(lambda r: amount * torch.sin(frequency * r))
    found = geometry(lambda z: spiral(lambda r: 0.3 * r)(bent(z) @ torch.from_numpy(turn)), z)
    assert found["log_volume"].value == pytest.approx(0, abs=1e-9)
    r = np.linalg.norm(z.numpy(), axis=1)
    slope = 0.3 + np.linalg.det(turn) * amount * frequency * np.cos(frequency * r)
    assert found["dirichlet"].value == pytest.approx(2 + np.mean((r * slope) ** 2))
    assert found["dirichlet"].value >= 2 and found["isometry_defect"].value > 0


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(0, 10_000))
def test_the_floor_holds_for_every_map_and_is_reached_by_conformal_ones(dim: int, seed: int):
    weight = torch.from_numpy(np.random.default_rng(seed).standard_normal((dim, dim)))
    found = geometry(lambda z: z + torch.tanh(z @ weight), gaussian(50, dim, seed))
    assert found["dirichlet"].value >= dirichlet_floor(found["log_volume"].value, dim) - 1e-9
    q = torch.from_numpy(rotation(dim, seed))
    equal = geometry(lambda z: 3 * z @ q + 1, gaussian(50, dim, seed))
    assert equal["dirichlet"].value == pytest.approx(dirichlet_floor(equal["log_volume"].value, dim))


@pytest.mark.parametrize("dim", [1, 3, 8])
def test_isometries_alone_are_at_the_minimum(dim: int):
    q = torch.from_numpy(rotation(dim))
    found = geometry(lambda z: z @ q + 4, gaussian(50, dim))
    assert found["dirichlet"].value == pytest.approx(dim) and found["isometry_defect"].value < 1e-20
    near = geometry(lambda z: z @ q + 0.05 * torch.sin(3 * z), gaussian(50, dim))
    assert near["isometry_defect"].value > 1e-4


def test_intervals_cover_the_truth():
    """h = He₂/√2: E h'² = E 2z² = 2. Of 60 intervals at 95%, 57 ± 1.7 should cover."""
    covered = 0
    for seed in range(60):
        jacobian = math.sqrt(2) * gaussian(300, 1, seed)[:, :, None]
        found = jacobian_geometry(jacobian, np.random.default_rng(seed), replicates=100)["dirichlet"]
        covered += found.low <= 2 <= found.high
    assert covered >= 50


def test_groups_widen_the_interval():
    jacobian = gaussian(200, 1)[:, :, None].repeat_interleave(8, 0)
    groups = np.repeat(np.arange(200), 8)

    def width(labels: np.ndarray | None) -> float:
        found = jacobian_geometry(jacobian, np.random.default_rng(0), groups=labels, replicates=300)["dirichlet"]
        return found.high - found.low

    assert width(groups) == pytest.approx(math.sqrt(8) * width(None), rel=0.15)


def test_bad_input():
    z = gaussian(10, 2)
    with pytest.raises(InputError, match="'z' must have rows and columns"):
        jacobians(torch.sin, z[:, 0])
    with pytest.raises(InputError, match="floating-point"):
        jacobians(lambda z: z, torch.ones(3, 2, dtype=torch.int64))
    with pytest.raises(InputError, match=r"\(1, 2\) to \(1, d\), but it gave \(1,\)"):
        jacobians(lambda z: z.sum(1), z)
    with pytest.raises(InputError, match=r"shape \(b, d, n\)"):
        jacobian_geometry(z, np.random.default_rng(0))
    with pytest.raises(InputError, match="1 of the 10 Jacobians"):
        geometry(torch.sqrt, torch.where(torch.arange(10)[:, None] == 3, 0.0, z.abs()))
