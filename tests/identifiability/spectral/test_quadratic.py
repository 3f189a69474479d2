"""The slowest quadratic function of latents, against the full matrix of products, and on tangled pairs."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.identifiability.spectral.ladder import polynomials
from jepatlas.identifiability.spectral.pair_ladder import fit_pair_ladder
from jepatlas.identifiability.spectral.quadratic import slowest_quadratic

RHO = 0.9


def pairs(rows: int, rates: np.ndarray | float, dim: int) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(0).standard_normal((2, rows, dim))
    return z, rates * z + np.sqrt(1 - np.square(rates)) * noise


def tangled(z: np.ndarray) -> np.ndarray:
    """Coordinates in pairs, each turned by an angle proportional to its length."""
    points = z[:, ::2] + 1j * z[:, 1::2]
    points = points * np.exp(1j * np.pi * np.abs(points))
    return np.concatenate([points.real, points.imag], axis=1)


def test_it_is_the_leading_eigenvalue_among_products():
    h, h_next = pairs(60_000, np.array([0.95, 0.8, 0.6]), 3)
    both = [polynomials(view, 2)[:, 3:] for view in (h, h_next)]
    both = [view - np.mean(both[0], axis=0) for view in both]
    covariance = sum(view.T @ view for view in both)
    lagged = both[0].T @ both[1]
    exact = np.linalg.eigvals(np.linalg.solve(covariance, lagged + lagged.T)).real.max()
    found = slowest_quadratic(h, h_next, replicates=50)
    assert found.value == pytest.approx(exact, abs=0.02) and exact == pytest.approx(0.95**2, abs=0.02)


def test_many_tangled_pairs_are_seen_where_random_features_fail():
    """In 32 dimensions, random features do not resolve functions of two coordinates; the radii are quadratic."""
    h, h_next = (tangled(view) for view in pairs(12_000, RHO, 32))
    linear = np.corrcoef(h[:, 0], h_next[:, 0])[0, 1]
    found = slowest_quadratic(h, h_next, replicates=50)
    assert found.low > 0.5 > linear
    ladder = fit_pair_ladder(h, h_next, latents=(h, h_next))
    verdicts = {verdict.name: verdict for verdict in ladder.verdicts(32)}
    assert verdicts["slowest_quadratic"].passed is False
    assert ladder.rho is not None and ladder.rho.high > 0.7, "a harmonic of correlation ρ² implies ρ"


def test_wide_rotations_do_not_fail():
    h, h_next = pairs(12_000, RHO, 32)
    ladder = fit_pair_ladder(h, h_next, latents=(h, h_next))
    assert ladder.quadratic is not None and ladder.quadratic.low < RHO**2
    verdicts = {verdict.name: verdict for verdict in ladder.verdicts(32)}
    assert verdicts["slowest_quadratic"].passed is True and verdicts["bound_rates"].passed is not False
