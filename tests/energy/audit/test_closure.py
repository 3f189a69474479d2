"""The closure and the repair against shortest ways that are searched one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from energy.audit.energies import one_way_line
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.energy.audit import audit, closure, repair
from jepatlas.energy.audit.closure_kernel import best_detours


def whole_numbers(size: int, seed: int) -> np.ndarray:
    """Energies whose sums are exact, some of them zero and some infinite."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 20, (size, size)).astype(float)
    return np.where(rng.random((size, size)) < 0.3, np.inf, matrix)


def least_of_all_ways(energies: np.ndarray, start: int, end: int) -> float:
    between = [state for state in range(len(energies)) if state not in (start, end)]
    ways = (w for length in range(len(between) + 1) for w in itertools.permutations(between, length))
    return min(sum(energies[a, b] for a, b in itertools.pairwise((start, *way, end))) for way in ways)


@given(st.integers(2, 5), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_the_closure_is_the_least_of_all_ways(size: int, seed: int) -> None:
    energies = whole_numbers(size, seed)
    found = closure(energies)
    for start, end in itertools.permutations(range(size), 2):
        assert found[start, end] == least_of_all_ways(energies, start, end)
    assert (np.diag(found) == 0).all()


@given(st.integers(2, 12), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_the_closure_is_idempotent_and_nowhere_above(size: int, seed: int) -> None:
    energies = whole_numbers(size, seed)
    once = closure(energies)
    assert (closure(once) == once).all()
    assert (once <= np.where(np.eye(size, dtype=bool), 0, energies)).all()


@given(st.integers(3, 7), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_best_detours_are_those_of_all_thirds(size: int, seed: int) -> None:
    energies = whole_numbers(size, seed)
    via = best_detours(energies)
    for row, column in itertools.permutations(range(size), 2):
        thirds = [energies[row, k] + energies[k, column] for k in range(size) if k not in (row, column)]
        found = via[row, column]
        assert (energies[row, found] + energies[found, column] if found >= 0 else np.inf) == min(thirds)


def test_a_repair_says_how_far_it_moved() -> None:
    line = one_way_line(5)
    broken = line.copy()
    broken[0, 3], broken[1, 4], broken[2, 2] = 7, np.inf, 1
    mended = repair(broken)
    assert (mended.energies == line).all()
    assert mended.largest == 4 and mended.opened == 1 and mended.share == pytest.approx(3 / 25)
    assert mended.mean == pytest.approx((4 + 1) / np.isfinite(broken).sum())
    assert repair(line).share == repair(line).largest == 0


def test_a_repaired_square_is_audited_clean() -> None:
    x = np.linspace(0, 1, 20)
    squares = (x[:, None] - x) ** 2
    assert audit(squares)["triangle"].passed is False
    mended = repair(squares)
    assert audit(mended.energies, x[:, None]).passed
    assert np.allclose(mended.energies, np.abs(x[:, None] - x) / 19)  # in the smallest steps there are


def test_negative_energies_are_zero_before_the_closure() -> None:
    mended = repair(np.array([[0.0, -1.0], [2.0, 0.0]]))
    assert (mended.energies == [[0, 0], [2, 0]]).all() and mended.largest == 1


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(InputError, match="must be square"):
        repair(np.zeros((2, 3)))
