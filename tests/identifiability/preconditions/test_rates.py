"""Null of the rates against simulated pairs, and effective sample sizes of dependent rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from jepatlas.identifiability.preconditions.rates import effective_pairs, sampled_rates


def pairs(rows: int, dim: int, rho: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    z, noise = rng.standard_normal((2, rows, dim))
    return z, rho * z + np.sqrt(1 - rho**2) * noise


def measured(h: np.ndarray, h_next: np.ndarray) -> np.ndarray:
    """Eigenvalues of the symmetrised C01 against C00, from the definition."""
    a, b = (view - (h + h_next).mean(0) / 2 for view in (h, h_next))
    return scipy.linalg.eigvalsh(a.T @ b + b.T @ a, a.T @ a + b.T @ b)


@pytest.mark.parametrize(("rho", "dim", "rows"), [(0.9, 1, 50), (0.9, 5, 500), (0.3, 8, 200), (0.95, 16, 1000)])
def test_null_matches_rates_of_simulated_pairs(rho: float, dim: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    drawn = np.array(list(sampled_rates(rho, dim, rows, rng, 200)))
    expected = np.array([measured(*pairs(rows, dim, rho, rng)) for _ in range(200)])
    noise = expected.std(0) * np.sqrt(2 / 200)
    assert (np.abs(drawn.mean(0) - expected.mean(0)) < 4 * noise).all()
    np.testing.assert_allclose(drawn.std(0), expected.std(0), rtol=0.3)


def test_no_null_with_fewer_pairs_than_directions() -> None:
    assert list(sampled_rates(0.9, 8, 9.0, np.random.default_rng(0), 10)) == []


def test_effective_sample_size_of_dependent_rows() -> None:
    rng = np.random.default_rng(1)
    h, h_next = pairs(4000, 3, 0.9, rng)
    assert effective_pairs(h, h_next, np.arange(4000), 0.9) == pytest.approx(4000, rel=0.1)
    assert effective_pairs(h, h_next, np.arange(4000) // 10, 0.9) == pytest.approx(4000, rel=0.2)
    copies = np.repeat(np.arange(400), 10)
    assert effective_pairs(h[copies], h_next[copies], copies, 0.9) == pytest.approx(400, rel=0.2)
    scale = np.exp(rng.standard_normal((4000, 1)))  # heavy tails: few rows dominate
    assert effective_pairs(h * scale, h_next * scale, np.arange(4000), 0.9) < 1000


def test_effective_sample_size_matches_its_definition() -> None:
    rng = np.random.default_rng(2)
    h, h_next = pairs(30, 2, 0.5, rng)
    for labels in (np.arange(30), np.arange(30) // 5):
        a, b = ((view - view.mean(0)) for view in (h, h_next))
        m = np.array(
            [
                (np.outer(u, v) + np.outer(v, u) - 0.5 * (np.outer(u, u) + np.outer(v, v))) / 2
                for u, v in zip(a, b, strict=True)
            ]
        )
        parts = np.array([(m[labels == label] - m.mean(0)).sum(0) for label in np.unique(labels)])
        count = len(parts)
        expected = 30**2 * (0.5 * 2 * 3 * 0.75**2) / np.square(parts).sum() * (count - 1) / count
        assert effective_pairs(h, h_next, labels, 0.5) == pytest.approx(min(expected, 30))
