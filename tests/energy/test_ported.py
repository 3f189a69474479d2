"""E₂(x, y) = E₁(Mx, My): its definition, what it declares of itself, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.linear_map import LinearMap
from jepatlas.energy import HEADS, IQE, L2, IQEConfig, PortedEnergy, SquaredL2
from jepatlas.energy.audit import audit


def random_map(d_out: int, d_in: int, seed: int = 0) -> LinearMap:
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.5, 2, d_in), rng.uniform(0.5, 2, d_out)
    weight, x_mean, y_mean = rng.standard_normal((d_out, d_in)), rng.standard_normal(d_in), rng.standard_normal(d_out)
    return LinearMap(weight, x_mean, y_mean, *scales)


@pytest.mark.parametrize("kind", HEADS)
def test_it_is_the_source_on_what_the_map_says(kind: str) -> None:
    config: Any = HEADS[kind]()
    head, to_source = config.build(16), random_map(16, 5)
    x, y = np.random.default_rng(1).standard_normal((2, 30, 5))
    ported = PortedEnergy(head, to_source)
    here = [torch.as_tensor(to_source.apply(rows), dtype=torch.float32) for rows in (x, y)]
    there = [torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y)]
    torch.testing.assert_close(ported(*there), head(*here), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ported.all_pairs(*there), head.all_pairs(*here), rtol=1e-4, atol=1e-4)
    assert ported(*there).dtype == torch.float32
    assert ported.guaranteed_quasimetric == head.guaranteed_quasimetric


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(2, 6))
@settings(max_examples=6, deadline=None)
def test_a_quasimetric_stays_one_under_any_map(seed: int, d_out: int, d_in: int) -> None:
    ported = PortedEnergy(IQE(2 * d_out, IQEConfig(chunks=2)), random_map(2 * d_out, d_in, seed))
    points = np.random.default_rng(seed).standard_normal((30, d_in)).astype(np.float32)
    assert audit(ported, points).passed


def test_it_is_pseudo_where_the_map_loses_a_direction_or_the_source_is() -> None:
    weight = np.diag([1.0, 2.0, 0.0])
    full, lossy = (LinearMap(one, np.zeros(3), np.zeros(3)) for one in (np.eye(3), weight))
    assert not PortedEnergy(L2(3), full).pseudo and PortedEnergy(L2(3), lossy).pseudo
    assert not PortedEnergy(L2(4), random_map(4, 3)).pseudo  # into more dimensions, nothing is lost
    assert PortedEnergy(L2(2), random_map(2, 3)).pseudo
    assert PortedEnergy(IQE(16), random_map(16, 3)).pseudo == IQE(16).pseudo
    apart = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.0, 0.0, -1.0]])
    assert float(PortedEnergy(L2(3), lossy)(*apart)) == 0
    assert not PortedEnergy(SquaredL2(3), full).guaranteed_quasimetric


def test_large_means_do_not_cost_precision() -> None:
    """Latents far from the origin are carried in float64, as the map was fitted."""
    far = LinearMap(np.eye(2), np.full(2, 1e6), np.zeros(2))
    x, y = (1e6 + torch.tensor(rows, dtype=torch.float64) for rows in ([[0.25, 0.0]], [[0.5, 0.0]]))
    assert float(PortedEnergy(L2(2), far)(x, y)) == pytest.approx(0.25)


def test_leading_dimensions_broadcast_and_gradients_flow() -> None:
    ported = PortedEnergy(L2(2), random_map(2, 3))
    x, y = torch.randn(4, 1, 3, requires_grad=True), torch.randn(5, 3)
    energies = ported(x, y)
    energies.sum().backward()
    assert energies.shape == (4, 5) and x.grad is not None and x.grad.abs().sum() > 0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="The map takes latents of width 3, but 2 was given"):
        PortedEnergy(L2(2), random_map(2, 3))(torch.zeros(1, 2), torch.zeros(1, 2))
    with pytest.raises(InputError, match="entries that are not finite"):
        PortedEnergy(L2(2), LinearMap(np.full((2, 2), np.nan), np.zeros(2), np.zeros(2)))
