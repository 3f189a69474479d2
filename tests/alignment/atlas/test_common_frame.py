"""Generalised Procrustes compared with scipy for two charts, and with row-wise iteration and search for more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from gaussian_worlds import rotation
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.alignment.atlas.common_frame import Frame, consensus, generalised_procrustes, place, polar, rank
from jepatlas.core.errors import InputError


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def noisy_charts(count: int, rows: int, dim: int, noise: float) -> list[np.ndarray]:
    z = gaussian(rows, dim)
    charts = [z @ rotation(dim, seed=k) + noise * gaussian(rows, dim, seed=100 + k) for k in range(count)]
    return [chart - chart.mean(0) for chart in charts]


def agreement(charts: list[np.ndarray], turns: list[np.ndarray]) -> float:
    """Σ_{k<l} Σ_s ⟨Q_k u_ks, Q_l u_ls⟩ over the rows."""
    placed = [chart @ turn.T for chart, turn in zip(charts, turns, strict=True)]
    return sum(float(np.sum(a * b)) for a, b in itertools.combinations(placed, 2))


def turns_of(frame: Frame) -> list[np.ndarray]:
    return [one.weight for one in frame.maps]


def shift(frame: Frame, k: int) -> np.ndarray:
    return frame.maps[k].apply(np.zeros((1, len(frame.maps[k].x_mean))))[0]


def by_rows(charts: list[np.ndarray]) -> list[np.ndarray]:
    """Gower's algorithm: rotate every chart onto the mean of the others until convergence."""
    turns = [np.eye(charts[0].shape[1]) for _ in charts]
    for _ in range(2000):
        for k, chart in enumerate(charts):
            others = sum(c @ t.T for j, (c, t) in enumerate(zip(charts, turns, strict=True)) if j != k)
            turns[k] = scipy.linalg.orthogonal_procrustes(chart, others)[0].T
    return turns


def test_two_charts_match_scipy_procrustes():
    a, b = gaussian(40, 3), gaussian(40, 3, seed=1)
    frame = generalised_procrustes([a, b], [np.arange(40)] * 2)
    np.testing.assert_allclose(frame.maps[0].weight, np.eye(3), atol=1e-12)
    turn, _ = scipy.linalg.orthogonal_procrustes(a - a.mean(0), b - b.mean(0))
    np.testing.assert_allclose(frame.maps[1].weight, turn, atol=1e-8)


@pytest.mark.parametrize(("narrow", "wide"), [(1, 2), (2, 3), (2, 4)])
def test_residual_matches_general_optimisation(narrow: int, wide: int):
    """The residual in the narrow chart's coordinates, minimised over rotations exp(A) of the wide chart."""
    x = gaussian(30, wide) * np.linspace(1, 3, wide)
    y = x[:, :narrow] @ rotation(narrow) + 0.5 * gaussian(30, narrow, seed=1) + 2
    xc, yc = x - x.mean(0), y - y.mean(0)
    above = np.triu_indices(wide, 1)

    def residual(angles: np.ndarray, mirror: float) -> float:
        skew = np.zeros((wide, wide))
        skew[above] = angles
        turn = scipy.linalg.expm(skew - skew.T) @ np.diag([mirror] + [1.0] * (wide - 1))
        return float(np.sum((yc - xc @ turn[:narrow].T) ** 2))

    starts = np.random.default_rng(2).uniform(-3, 3, (4, len(above[0])))
    best = min(scipy.optimize.minimize(residual, start, (m,)).fun for start in starts for m in (1.0, -1.0))
    down, up = place(x, y), place(y, x)
    np.testing.assert_allclose(down.weight, up.weight.T, atol=1e-10)
    assert np.sum((y - down.apply(x)) ** 2) == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(down.weight @ down.weight.T, np.eye(narrow), atol=1e-10)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_several_charts_match_row_wise_iteration(noise: float):
    charts = noisy_charts(4, 60, 3, noise)
    frame = generalised_procrustes(charts, [np.arange(60)] * 4)
    assert agreement(charts, turns_of(frame)) >= agreement(charts, by_rows(charts)) * (1 - 1e-9)
    for turn in turns_of(frame):
        np.testing.assert_allclose(turn.T @ turn, np.eye(3), atol=1e-12)
    assert frame.tied == (3,) * 4 and frame.shared == (60,) * 4


def test_rotations_of_the_plane_match_exhaustive_search():
    charts = noisy_charts(3, 25, 2, 0.7)
    frame = generalised_procrustes(charts, [np.arange(25)] * 3)
    angles = np.linspace(0, 2 * np.pi, 181)
    turns = [np.array([[np.cos(t), -np.sin(t) * s], [np.sin(t), np.cos(t) * s]]) for t in angles for s in (1, -1)]
    best = max(agreement(charts, [np.eye(2), a, b]) for a, b in itertools.product(turns, turns[::7]))
    assert agreement(charts, turns_of(frame)) >= best


def test_order_of_rows_and_charts_does_not_matter():
    charts, ids = noisy_charts(3, 50, 3, 0.3), [np.arange(50) * 7] * 3
    plain = generalised_procrustes(charts, ids)
    order = np.random.default_rng(5).permutation(50)
    mixed = generalised_procrustes([charts[0], charts[2][order], charts[1]], [ids[0], ids[2][order], ids[1]])
    for k, j in ((0, 0), (1, 2), (2, 1)):
        np.testing.assert_allclose(plain.maps[k].weight, mixed.maps[j].weight, atol=1e-5)


@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.integers(0, 1000),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_charts_of_different_width_and_states_agree_in_the_frame(widths: list[int], seed: int, shifted: bool):
    """Every chart is a rotation of some coordinates of the state, on its own sample of states with its own mean."""
    rng, dim = np.random.default_rng(seed), max(widths)
    z = rng.standard_normal((80, dim)) + 3 * shifted
    ids = [np.sort(rng.choice(80, size=60, replace=False)) for _ in widths]
    views = [np.eye(dim)[:d] for d in widths]
    turned = [rotation(d, seed + k) @ view for k, (d, view) in enumerate(zip(widths, views, strict=True))]
    charts = [(z[own] - z[own].mean(0)) @ turn.T for own, turn in zip(ids, turned, strict=True)]
    frame = generalised_procrustes(charts, ids)
    wide = int(np.argmax(widths))
    for k in range(len(widths)):
        shared = np.intersect1d(ids[k], ids[wide])
        a, b = (charts[j][np.searchsorted(ids[j], shared)] for j in (k, wide))
        seen = frame.maps[k].weight.T @ (b + shift(frame, wide) - shift(frame, k)).T  # into k's coordinates
        np.testing.assert_allclose(seen.T, a, atol=1e-6)
    states = np.unique(np.concatenate(ids))
    found = consensus(dict(enumerate(frame.maps)), charts, ids, states)
    full = np.isin(states, ids[wide])
    np.testing.assert_allclose(found[full], charts[wide][np.searchsorted(ids[wide], states[full])], atol=1e-6)


def test_charts_without_shared_states_agree_through_a_third_chart():
    z = gaussian(90, 3) + 1
    ids = [np.arange(30), np.arange(15, 75), np.arange(60, 90)]
    turns = [rotation(3, seed=k) for k in range(3)]
    charts = [(z[own] - z[own].mean(0)) @ turn.T for own, turn in zip(ids, turns, strict=True)]
    frame = generalised_procrustes(charts, ids)
    between = frame.maps[2].weight.T @ frame.maps[0].weight
    np.testing.assert_allclose(between, turns[2] @ turns[0].T, atol=1e-9)
    assert frame.tied == (3, 3, 3) and frame.shared == (15, 30, 15)
    # the origin is the mean of the first chart's states
    truth = z[60:] - z[:30].mean(0)
    np.testing.assert_allclose(charts[2] @ frame.maps[2].weight.T + shift(frame, 2), truth @ turns[0].T, atol=1e-9)


def test_directions_missing_in_the_connecting_chart_are_not_tied():
    z = gaussian(90, 4)
    ids = [np.arange(40), np.arange(20, 70), np.arange(50, 90)]
    charts = [z[ids[0]], z[ids[1]][:, :2], z[ids[2]] @ rotation(4)]
    frame = generalised_procrustes([chart - chart.mean(0) for chart in charts], ids)
    assert frame.tied == (2, 2, 2)


def test_n_shared_states_tie_n_minus_one_directions():
    charts = [gaussian(20, 6), gaussian(20, 6, seed=1)]
    assert generalised_procrustes(charts, [np.arange(20), np.arange(16, 36)]).tied == (3, 3)


@pytest.mark.parametrize("shared", [0, 1])
def test_disconnected_charts_are_named(shared: int):
    ids = [np.arange(10), np.arange(5, 15), np.arange(100 - shared, 110 - shared), np.arange(100, 110)]
    ids[0] = np.r_[ids[0], 99] if shared else ids[0]
    charts = [gaussian(len(own), 2, seed=k) for k, own in enumerate(ids)]
    with pytest.raises(InputError, match=r"\(ada, ben\) and .* \(cem, dan\)"):
        generalised_procrustes(charts, ids, ["ada", "ben", "cem", "dan"])


def test_polar_and_rank():
    matrix = gaussian(5, 3) @ np.diag([1.0, 2.0, 0.0])
    assert rank(matrix) == 2 and rank(gaussian(5, 3)) == 3 and rank(np.zeros((2, 2))) == 0
    stretch = gaussian(4, 4, seed=3)
    q, _ = scipy.linalg.polar(stretch)
    np.testing.assert_allclose(polar(stretch), q, atol=1e-10)


def test_inputs_are_not_modified():
    charts, ids = noisy_charts(2, 20, 2, 0.1), [np.arange(20)[::-1].copy(), np.arange(20)]
    before = [array.copy() for array in (*charts, *ids)]
    generalised_procrustes(charts, ids)
    for array, old in zip((*charts, *ids), before, strict=True):
        np.testing.assert_array_equal(array, old)
