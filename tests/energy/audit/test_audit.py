"""The audit passes quasimetrics, names the worst triple of other energies, and rejects invalid input."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from energy.audit.energies import (
    PredictionError,
    iqe,
    l2,
    mrn,
    mrn_without_root,
    one_way_line,
    points,
    squared_l2,
    trained_prediction_error,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.core.errors import InputError
from jepatlas.energy.audit import Audit, audit, closure, repair


def failed(found: Audit) -> set[str]:
    return set(found.failed)


@pytest.mark.parametrize("energy", [l2, mrn, iqe])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quasimetric_passes(energy: Callable[..., Any], dtype: type) -> None:
    found = audit(energy, points().astype(dtype) + 3, pseudo=energy is iqe)
    assert found.passed and found["midpoints"].n > 10_000
    assert found["asymmetry"].value == pytest.approx(0) if energy is l2 else found["asymmetry"].value > 0.1


@pytest.mark.parametrize("energy", [squared_l2, mrn_without_root])
def test_squared_distances_fail_and_the_worst_triple_is_named(energy: Callable[..., Any]) -> None:
    x = points(seed=1)
    found = audit(energy, x)
    assert failed(found) == {"triangle", "midpoints"}
    start, end, via = _states(found["triangle"].advice)
    tensors = torch.from_numpy(x)
    direct, first, second = (energy(tensors[a], tensors[b]).item() for a, b in ((start, end), (start, via), (via, end)))
    assert first + second < direct
    assert 1 - (first + second) / direct == pytest.approx(_worst_of_all_triples(energy, tensors))


def _states(advice: str) -> tuple[int, int, int]:
    start, end, via = (int(number) for number in re.findall(r"state (\d+)", advice)[:3])
    return start, end, via


def _worst_of_all_triples(energy: Callable[..., Any], x: torch.Tensor) -> float:
    matrix = energy(x[:, None], x[None]).numpy()
    scale = np.median(matrix[matrix > 0])
    detour = (matrix[:, :, None] + matrix[None]).min(1)
    return float(((matrix - detour) / np.maximum(matrix, scale / 10)).max())


def test_midpoints_of_a_squared_distance_halve_it() -> None:
    wide = points(12, width=40)  # only points between these violate the inequality
    found = audit(squared_l2, wide)
    assert failed(found) == {"midpoints"} and found["midpoints"].value == pytest.approx(0.5, abs=0.01)
    assert "100.0%" in found["midpoints"].advice


def test_a_prediction_error_is_not_a_quasimetric() -> None:
    found = audit(trained_prediction_error(), points())
    assert {"identity", "triangle", "midpoints"} <= failed(found)


def test_midpoints_of_a_numpy_function_are_found_without_gradients() -> None:
    found = audit(lambda x, y: np.square(np.asarray(x) - np.asarray(y)).sum(-1), points(8, 40))
    assert failed(found) == {"midpoints"}


def test_negative_energies_and_nonzero_diagonals_fail() -> None:
    x = points(20)
    assert failed(audit(lambda x, y: l2(x, y) - 0.5, x)) >= {"nonnegativity", "identity"}
    assert failed(audit(lambda x, y: (squared_l2(x, y) + 1e-6).sqrt(), x)) == {"identity"}
    assert "state" in audit(lambda x, y: l2(x, y) - 0.5, x)["nonnegativity"].advice


def test_distinct_states_at_energy_zero_fail_unless_declared() -> None:
    x = points(20, 1)
    found = audit(lambda x, y: torch.relu(y - x).sum(-1), x)
    assert failed(found) == {"indiscernibles"}
    assert found["indiscernibles"].value == pytest.approx(0.5)
    start, end = np.argmax(x), np.argmin(x)  # the most distant pair at energy zero: downwards
    assert f"from state {start} to state {end}" in found["indiscernibles"].advice
    assert audit(lambda x, y: torch.relu(y - x).sum(-1), x, pseudo=True)["indiscernibles"].passed is None


def test_the_pseudo_attribute_of_an_energy_is_read() -> None:
    class Downhill:
        pseudo = True

        def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.maximum(y - x, 0).sum(-1)

    assert audit(Downhill(), points(20, 1)).passed


def test_the_floor_is_the_smallest_energy_per_distance() -> None:
    found = audit(lambda x, y: 3 * l2(x, y) + np.maximum(y - x, 0).sum(-1), points(30, 1))
    assert found["floor"].value == pytest.approx(3)
    assert found["floor"].passed is None


def test_equal_positions_are_one_state() -> None:
    x = np.repeat(points(10), 2, axis=0)
    assert audit(l2, x).passed
    assert failed(audit(l2(x[:, None], x[None]))) == {"indiscernibles"}  # without positions they are distinct


def distances(n: int, seed: int = 0) -> np.ndarray:
    x = points(n, seed=seed)
    return l2(x[:, None], x[None])


def test_statistics_of_large_matrices_use_a_subsample_by_seed() -> None:
    matrix = distances(300)
    first, again, other = (audit(matrix, points(300), states=40, seed=seed) for seed in (0, 0, 1))
    assert len(first.states) == 40 and first.checked == 300
    assert (first.states == again.states).all() and (first.states != other.states).any()
    assert first.verdicts == again.verdicts
    assert first["floor"].value == pytest.approx(1)
    assert first["triangle"].n == 300 * 299 and first["asymmetry"].n == 40 and first.detectable == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "entry", "value"),
    [("triangle", (3, 200), 50.0), ("nonnegativity", (5, 7), -1.0), ("identity", (11, 11), 3.0)],
)
def test_one_wrong_entry_beyond_the_subsample_is_found(
    name: str, entry: tuple[int, int], value: float, seed: int
) -> None:
    matrix = distances(260, seed)
    assert audit(matrix, states=20, seed=seed).failed == []
    matrix[entry] = value
    found = audit(matrix, states=20, seed=seed)
    assert name in found.failed_axioms and "not a quasimetric" in found.kind
    assert f"state {entry[0]}" in found[name].advice


@pytest.mark.parametrize("seed", range(2))
def test_above_two_thousand_states_the_detectable_share_of_pairs_is_stated(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((2100, 3)).astype(np.float32)
    squares = np.square(x).sum(1)
    matrix = np.sqrt(np.maximum(squares[:, None] + squares - 2 * x @ x.T, 0))
    np.fill_diagonal(matrix, 0)
    tidy = audit(matrix, tolerance=1e-3, seed=seed)
    assert tidy.failed == [] and 0 < tidy.detectable < 1e-4
    assert "would have been seen" in tidy["triangle"].advice
    rng = np.random.default_rng(seed)
    some = rng.random(matrix.shape) < 10 * tidy.detectable
    broken = audit(np.where(some, 10 * matrix, matrix), tolerance=1e-3, seed=seed)
    assert broken.failed_axioms == ["triangle"]
    negative = matrix.copy()
    negative[2000, 17] = -1
    assert "nonnegativity" in audit(negative, tolerance=1e-3, seed=seed).failed


@pytest.mark.parametrize("seed", range(3))
def test_the_tolerance_follows_from_the_precision_of_the_numbers(seed: int) -> None:
    matrix = distances(60, seed)
    squared = np.square(matrix)
    assert audit(squared.astype(np.float16))["triangle"].passed is False
    for rounded in (matrix.astype(np.float16), matrix.round(3), matrix.round(2)):
        found = audit(rounded)
        assert "triangle" not in found.failed
        assert found["triangle"].threshold is not None and found["triangle"].threshold <= 0.02
    assert audit(squared.round(2))["triangle"].passed is False


def test_the_identity_of_a_function_is_checked_at_all_points() -> None:
    x = points(300)

    def energy(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        odd = (np.asarray(start) == x[123]).all(-1) & (np.asarray(end) == x[123]).all(-1)
        return np.linalg.norm(np.asarray(start) - np.asarray(end), axis=-1) + odd

    found = audit(energy, x, states=10)
    assert "identity" in found.failed and "state 123" in found["identity"].advice


def test_the_histogram_counts_every_pair() -> None:
    found = audit(squared_l2, points(30))
    assert found.gaps.counts.sum() == 30 * 29 and len(found.gaps.edges) == len(found.gaps.counts) + 1


def test_infinite_energies_in_the_triangle_inequality() -> None:
    line = one_way_line()
    assert failed(audit(line)) == set()
    line[0, 4] = np.inf  # although a path exists
    broken = audit(line)["triangle"]
    assert broken.passed is False and broken.value == 1 and "from state 0 to state 4" in broken.advice


def test_float32_rounding_is_not_a_violation() -> None:
    x = points(80, 1)[:, 0].cumsum()
    line = np.abs(x[:, None] - x)  # every triple in order is an equality
    assert audit(line.astype(np.float32)).passed and audit(line.astype(np.float32).astype(np.float64)).passed
    assert audit(line.astype(np.float32), tolerance=1e-12)["triangle"].passed is False


def test_modules_are_called_in_their_own_dtype() -> None:
    network = PredictionError().double()
    assert audit(network, points(10).astype(np.float32))["triangle"].threshold == pytest.approx(1024 * 2**-52)
    assert audit(PredictionError(), points(10))["triangle"].threshold == pytest.approx(1024 * 2**-23)


@given(st.integers(2, 9), st.integers(0, 2**31), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_triangle_verdict_agrees_with_all_triples(size: int, seed: int, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.uniform(0.5, 2.0, (size, size))
    matrix = np.where(gaps & (rng.random((size, size)) < 0.3), np.inf, matrix)
    np.fill_diagonal(matrix, 0)
    obeys = bool((matrix <= (matrix[:, :, None] + matrix[None]).min(1) + 1e-12).all())
    assert audit(matrix)["triangle"].passed is obeys
    assert audit(repair(matrix).energies).passed
    assert obeys is np.allclose(closure(matrix), matrix)


@pytest.mark.parametrize(
    ("energy", "given_points", "message"),
    [
        (np.ones((3, 4)), None, "square"),
        (np.array([[0, np.nan], [1, 0]]), None, "from state 0 to state 1"),
        (np.zeros((1, 1)), None, "at least 2 states"),
        (np.full((2, 2), "a"), None, "real numbers"),
        (l2, None, "points"),
        (l2, points(1), "at least 2 states"),
        (l2, points(0), "at least 2 states"),
        (l2, np.ones(3), "points"),
        (l2, np.array([[1.0], [np.inf]]), "points"),
        (np.zeros((3, 3)), points(4), "3 rows of energies and 4"),
        ("an energy", None, "energy must be"),
        (lambda x, y: 1.0 * x, points(5), "returned shape"),
        (lambda x, y: l2(x, y) * np.nan, points(5), "NaN"),
        (PredictionError(width=3), points(5), "width 4"),
    ],
)
def test_invalid_input_is_rejected(energy: Any, given_points: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        audit(energy, given_points)


def test_truth_must_have_the_same_states_and_be_non_negative() -> None:
    with pytest.raises(InputError, match="true energies"):
        audit(np.zeros((3, 3)), truth=np.zeros((2, 2)))
    with pytest.raises(InputError, match="True energies"):
        audit(np.zeros((2, 2)), truth=-np.ones((2, 2)))


def asymmetry_by_definition(energies: np.ndarray) -> float:
    def of_pair(there: float, back: float) -> float:
        if np.isinf(there) or np.isinf(back):
            return float(there != back)
        return abs(there - back) / (there + back) if there + back else 0.0

    pairs = itertools.combinations(range(len(energies)), 2)
    return float(np.mean([of_pair(energies[a, b], energies[b, a]) for a, b in pairs]))


@given(st.integers(2, 8), st.integers(0, 2**31))
@settings(max_examples=12, deadline=None)
def test_the_asymmetry_index_matches_its_definition(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    energies = rng.choice([0.0, 1.0, 2.5, np.inf], (size, size))
    found = audit(energies)["asymmetry"]
    assert found.value == pytest.approx(asymmetry_by_definition(energies))
    assert found.low - 1e-12 <= found.value <= found.high + 1e-12 or size < 4  # few states have few distinct resamples


def test_the_asymmetry_of_symmetric_and_one_way_energies_is_0_and_1() -> None:
    energies = np.random.default_rng(0).random((6, 6))
    assert audit(energies + energies.T)["asymmetry"].value == 0
    assert audit(one_way_line())["asymmetry"].value == 1


def test_the_most_asymmetric_pair_is_named_in_its_larger_direction() -> None:
    energies = np.ones((5, 5))
    energies[3, 1] = 9
    assert "from state 3 to state 1: 9" in audit(energies)["asymmetry"].advice
