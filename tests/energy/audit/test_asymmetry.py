"""The asymmetry index from its definition, infinities included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from energy.audit.energies import one_way_line
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.energy.audit import audit


def by_definition(energies: np.ndarray) -> float:
    def of_pair(there: float, back: float) -> float:
        if np.isinf(there) or np.isinf(back):
            return float(there != back)
        return abs(there - back) / (there + back) if there + back else 0.0

    pairs = itertools.combinations(range(len(energies)), 2)
    return float(np.mean([of_pair(energies[a, b], energies[b, a]) for a, b in pairs]))


@given(st.integers(2, 8), st.integers(0, 2**31))
@settings(max_examples=12, deadline=None)
def test_the_index_is_its_definition(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    energies = rng.choice([0.0, 1.0, 2.5, np.inf], (size, size))
    found = audit(energies)["asymmetry"]
    assert found.value == pytest.approx(by_definition(energies))
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12 or size < 4  # few states, few distinct draws


def test_symmetric_and_one_way_are_the_ends() -> None:
    energies = np.random.default_rng(0).random((6, 6))
    assert audit(energies + energies.T)["asymmetry"].value == 0
    assert audit(one_way_line())["asymmetry"].value == 1


def test_the_most_different_pair_is_named_from_its_dear_side() -> None:
    energies = np.ones((5, 5))
    energies[3, 1] = 9
    assert "from state 3 to state 1: 9, and 1 back" in audit(energies)["asymmetry"].advice
