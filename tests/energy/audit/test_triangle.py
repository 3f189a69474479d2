"""Closure and repair against enumeration of all paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from energy.audit.energies import one_way_line
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.core.kernels.min_plus import min_plus_square
from jepatlas.energy.audit import audit, closure, repair


def integer_energies(size: int, seed: int) -> np.ndarray:
    """Energies whose sums are exact, some of them zero and some infinite."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 20, (size, size)).astype(float)
    return np.where(rng.random((size, size)) < 0.3, np.inf, matrix)


def shortest_path_by_enumeration(energies: np.ndarray, start: int, end: int) -> float:
    between = [state for state in range(len(energies)) if state not in (start, end)]
    paths = (p for length in range(len(between) + 1) for p in itertools.permutations(between, length))
    return min(sum(energies[a, b] for a, b in itertools.pairwise((start, *path, end))) for path in paths)


@given(st.integers(2, 5), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_the_closure_matches_enumeration(size: int, seed: int) -> None:
    energies = integer_energies(size, seed)
    found = closure(energies)
    for start, end in itertools.permutations(range(size), 2):
        assert found[start, end] == shortest_path_by_enumeration(energies, start, end)
    assert (np.diag(found) == 0).all()


@given(st.integers(2, 12), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_the_closure_is_idempotent_and_nowhere_above_the_energies(size: int, seed: int) -> None:
    energies = integer_energies(size, seed)
    once = closure(energies)
    assert (closure(once) == once).all()
    assert (once <= np.where(np.eye(size, dtype=bool), 0, energies)).all()


@pytest.mark.parametrize("size", [3, 8, 9, 601])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_detours_match_the_definition(size: int, dtype: type) -> None:
    energies = integer_energies(size, size).astype(dtype)
    expected = np.stack([(row[:, None] + energies).min(0) for row in energies])
    found = min_plus_square(energies)
    assert found.dtype == dtype and np.array_equal(found, expected)


def test_a_repair_reports_its_distance() -> None:
    line = one_way_line(5)
    broken = line.copy()
    broken[0, 3], broken[1, 4], broken[2, 2] = 7, np.inf, 1
    repaired = repair(broken)
    assert (repaired.energies == line).all()
    assert repaired.largest == 4 and repaired.opened == 1 and repaired.share == pytest.approx(3 / 25)
    assert repaired.mean == pytest.approx((4 + 1) / np.isfinite(broken).sum())
    assert repair(line).share == repair(line).largest == 0


def test_a_repaired_matrix_passes_the_audit() -> None:
    x = np.linspace(0, 1, 20)
    squares = (x[:, None] - x) ** 2
    assert audit(squares)["triangle"].passed is False
    repaired = repair(squares)
    assert audit(repaired.energies, x[:, None]).passed
    assert np.allclose(repaired.energies, np.abs(x[:, None] - x) / 19)  # shortest paths take the smallest steps


def test_negative_energies_count_as_zero() -> None:
    repaired = repair(np.array([[0.0, -1.0], [2.0, 0.0]]))
    assert (repaired.energies == [[0, 0], [2, 0]]).all() and repaired.largest == 1


def test_a_matrix_that_is_not_square_is_rejected() -> None:
    with pytest.raises(InputError, match="square"):
        repair(np.zeros((2, 3)))
