"""Asymmetric scale effort against its integral along paths, and the axioms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from jepatlas.core.errors import InputError
from jepatlas.energy.exact.scale import scale_energy

sizes = st.floats(1e-3, 1e3)
weights = st.floats(0.1, 10)


@pytest.mark.parametrize(("s", "s_next"), [(0.5, 4.0), (4.0, 0.5)])
def test_it_is_the_integral_of_the_local_effort(s, s_next):
    grow, shrink = 0.7, 2.5
    change = s_next - s
    effort = grow * max(change, 0) + shrink * max(-change, 0)
    exact, _ = quad(lambda t: effort / (s + t * change), 0, 1)
    assert scale_energy(np.array(s), np.array(s_next), grow, shrink) == pytest.approx(exact)


@given(sizes, sizes, sizes, weights, weights)
def test_a_detour_never_pays_and_staying_is_free(a, b, c, grow, shrink):
    def energy(x: float, y: float) -> float:
        return float(scale_energy(np.array(x), np.array(y), grow, shrink))

    assert energy(a, c) <= energy(a, b) + energy(b, c) + 1e-9
    assert energy(a, a) == 0
    assert energy(a, b) >= 0


@given(sizes, sizes, st.floats(0.01, 100))
def test_only_the_ratio_counts_and_turning_round_swaps_the_weights(a, b, unit):
    x, y = np.array(a), np.array(b)
    assert scale_energy(unit * x, unit * y, 1.0, 4.0) == pytest.approx(scale_energy(x, y, 1.0, 4.0), abs=1e-9)
    assert scale_energy(x, y, 1.0, 4.0) == scale_energy(y, x, 4.0, 1.0)


def test_it_broadcasts_to_all_pairs():
    s = np.array([1.0, 2.0, 4.0])
    found = scale_energy(s[:, None], s[None], 1.0, 3.0)
    np.testing.assert_allclose(found / np.log(2), [[0, 1, 2], [3, 0, 1], [6, 3, 0]])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_refusals(bad):
    with pytest.raises(InputError, match="sizes are positive"):
        scale_energy(np.array([1.0, bad]), np.ones(2))
    with pytest.raises(InputError, match="shrink is"):
        scale_energy(np.ones(1), np.ones(1), shrink=bad)
