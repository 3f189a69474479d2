"""Ladder reading from exact eigenfunctions with given eigenvalues."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special

from jepatlas.core.records import Estimate
from jepatlas.identifiability import Ladder, read_ladder
from jepatlas.identifiability.spectral.ladder import polynomials


def near(value: float, width: float = 0.004) -> Estimate:
    return Estimate(value, value - width, value + width, 5000)


def exact(rates: list[float], count: int, rows: int = 4000) -> tuple[list[float], np.ndarray]:
    """The `count` slowest Hermite functions of a Gaussian world with these rates."""
    z = np.random.default_rng(0).standard_normal((rows, len(rates)))
    powers = [p for p in itertools.product(range(5), repeat=len(rates)) if 0 < sum(p) < 5]
    values = [float(np.prod(np.power(rates, p))) for p in powers]
    order = sorted(range(len(powers)), key=lambda i: (-values[i], sum(powers[i])))[:count]
    columns = [np.prod([scipy.special.eval_hermitenorm(d, z[:, i]) for i, d in enumerate(powers[o])], 0) for o in order]
    return [values[i] for i in order], np.stack(columns, 1)


def read(values: list[float], functions: np.ndarray, width: float = 0.004, **given: float) -> Ladder:
    fitted = [value + given.get("overfit", 0.0) for value in values]
    return read_ladder([near(value, width) for value in values], fitted, functions)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_one_rate(n: int):
    ladder = read(*exact([0.95] * n, n + 4))
    assert ladder.dim == n
    assert ladder.directions == tuple(range(n))
    assert [step.kind for step in ladder.steps[n : n + 1]] == ["harmonic"]
    assert ladder.second is not None and ladder.second.value == pytest.approx(0.95**2)
    assert f"{n} directions" in ladder.advice


def test_distinct_rates_within_the_window():
    ladder = read(*exact([0.95, 0.93, 0.91], 10))
    assert ladder.dim == 3
    assert [ladder.steps[i].eigenvalue.value for i in ladder.directions] == [0.95, 0.93, 0.91]


def test_direction_outside_the_window_follows_a_harmonic():
    ladder = read(*exact([0.95, 0.88], 6))
    assert ladder.dim == 2
    assert ladder.directions == (0, 2)
    assert ladder.steps[1].kind == "harmonic"


def test_fast_directions_are_not_searched():
    ladder = read(*exact([0.95, 0.5], 6))
    assert ladder.dim == 1
    assert ladder.min_rate == pytest.approx(0.95**2.75)
    assert "above 0.87" in ladder.advice


def test_mixture_of_direction_and_harmonic_is_undecided():
    values, functions = exact([0.95, 0.9025], 4)
    first, second = (functions[:, i] / functions[:, i].std() for i in (1, 2))
    functions = np.c_[functions[:, 0], first + second, first - second, functions[:, 3]]
    ladder = read(values, functions)
    assert ladder.dim is None
    assert ladder.directions == (0,)
    assert "function 2 is neither" in ladder.advice


def test_harmonic_above_the_window_is_undecided():
    z = np.random.default_rng(0).standard_normal(4000)
    ladder = read([0.95, 0.94], np.c_[z, z**2 - 1])
    assert [step.kind for step in ladder.steps] == ["direction", "undecided"]
    assert ladder.dim is None


def test_overfitted_functions_are_undecided():
    values, functions = exact([0.9, 0.9], 5)
    assert read(values, functions, overfit=0.02).dim == 2
    ladder = read(values, functions, overfit=0.06)
    assert ladder.dim is None
    assert ladder.steps[0].kind == "undecided"


def test_dimension_is_unknown_without_harmonics():
    values, functions = exact([0.95] * 4, 4)
    ladder = read(values, functions)
    assert ladder.dim is None
    assert len(ladder.directions) == 4
    assert ladder.second is None
    assert "no harmonic" in ladder.advice


def test_no_slow_functions():
    functions = np.random.default_rng(0).standard_normal((4000, 3))
    ladder = read([0.01, 0.03, 0.0], functions, width=0.02)  # the second is positive by chance
    assert ladder.dim is None
    assert ladder.directions == ()
    assert ladder.advice.startswith("Undecided") and "correlated" in ladder.advice


def test_better_leading_estimate_moves_the_window():
    """A poorly fitted first function (.93) leaves its harmonic (.88) inside its window (.865)."""
    z = np.random.default_rng(0).standard_normal((4000, 2))
    harmonic = z[:, 0] ** 2 - 1 + 1.1 * np.random.default_rng(1).standard_normal(4000)
    values, functions = [near(0.93), near(0.885)], np.c_[z[:, 0], harmonic]
    kinds = [read_ladder(values, [0.93, 0.885], functions, leading).steps[1].kind for leading in (None, near(0.95))]
    assert kinds == ["direction", "harmonic"]


def test_ladder_of_polynomials():
    h = np.random.default_rng(0).standard_normal((7, 3))
    terms = polynomials(h, 3)
    assert terms.shape == (7, 3 + 6 + 10)
    np.testing.assert_allclose(terms[:, 3], h[:, 0] ** 2)
    np.testing.assert_allclose(terms[:, -1], h[:, 2] ** 3)
    np.testing.assert_allclose(terms[:, 13], h[:, 0] * h[:, 1] * h[:, 2])


def test_directions_are_limited_by_columns():
    """Of three independent functions of two columns, the third is not counted, and the reason is given."""
    values, functions = exact([0.95, 0.94, 0.93], 6)
    estimates = [near(value) for value in values]
    ladder = read_ladder(estimates, values, functions, columns=2)
    assert ladder.dim is None and ladder.directions == (0, 1) and ladder.steps[2].kind == "undecided"
    assert "components (2)" in ladder.advice
    for columns in (3, 4, None):
        assert read_ladder(estimates, values, functions, columns=columns).dim == 3
