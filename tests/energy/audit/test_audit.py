"""The audit passes quasimetrics, catches what is none with the worst triple, and refuses what cannot be audited."""

from __future__ import annotations

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
    return {verdict.name for verdict in found.verdicts if verdict.passed is False}


@pytest.mark.parametrize("energy", [l2, mrn, iqe])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quasimetric_passes(energy: Callable[..., Any], dtype: type) -> None:
    found = audit(energy, points().astype(dtype) + 3, pseudo=energy is iqe)
    assert found.passed and found["midpoints"].n > 10_000
    assert found["asymmetry"].value == pytest.approx(0) if energy is l2 else found["asymmetry"].value > 0.1


@pytest.mark.parametrize("energy", [squared_l2, mrn_without_root])
def test_squares_are_caught_with_the_worst_triple(energy: Callable[..., Any]) -> None:
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


def test_midpoints_of_a_squared_distance_save_half() -> None:
    wide = points(12, width=40)  # no triple of these violates: only points between do
    found = audit(squared_l2, wide)
    assert failed(found) == {"midpoints"} and found["midpoints"].value == pytest.approx(0.5, abs=0.01)
    assert "100.0% of points on straight ways" in found["midpoints"].advice


def test_a_networks_prediction_error_is_no_energy() -> None:
    found = audit(trained_prediction_error(), points())
    assert {"identity", "triangle", "midpoints"} <= failed(found)


def test_an_array_function_is_searched_without_gradients() -> None:
    found = audit(lambda x, y: np.square(np.asarray(x) - np.asarray(y)).sum(-1), points(8, 40))
    assert failed(found) == {"midpoints"}


def test_sign_and_staying_are_held_to_zero() -> None:
    x = points(20)
    assert failed(audit(lambda x, y: l2(x, y) - 0.5, x)) >= {"nonnegativity", "identity"}
    assert failed(audit(lambda x, y: (squared_l2(x, y) + 1e-6).sqrt(), x)) == {"identity"}
    assert "state" in audit(lambda x, y: l2(x, y) - 0.5, x)["nonnegativity"].advice


def test_distinct_states_at_no_energy_are_named_unless_declared() -> None:
    x = points(20, 1)
    found = audit(lambda x, y: torch.relu(y - x).sum(-1), x)
    assert failed(found) == {"indiscernibles"}
    assert found["indiscernibles"].value == pytest.approx(0.5)
    start, end = np.argmax(x), np.argmin(x)  # the farthest that costs nothing: downwards
    assert f"from state {start} to state {end}" in found["indiscernibles"].advice
    assert audit(lambda x, y: torch.relu(y - x).sum(-1), x, pseudo=True)["indiscernibles"].passed is None


def test_what_an_energy_declares_of_itself_is_read() -> None:
    class Downhill:
        pseudo = True

        def __call__(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.maximum(y - x, 0).sum(-1)

    assert audit(Downhill(), points(20, 1)).passed


def test_the_floor_is_the_least_energy_for_a_length() -> None:
    found = audit(lambda x, y: 3 * l2(x, y) + np.maximum(y - x, 0).sum(-1), points(30, 1))
    assert found["floor"].value == pytest.approx(3)
    assert found["floor"].passed is None


def test_one_position_given_twice_is_one_state() -> None:
    x = np.repeat(points(10), 2, axis=0)
    assert audit(l2, x).passed
    assert failed(audit(l2(x[:, None], x[None]))) == {"indiscernibles"}  # of a matrix alone nobody can know


def test_large_matrices_are_sampled_by_seed() -> None:
    x = points(300)
    matrix = l2(x[:, None], x[None])
    first, again, other = (audit(matrix, x, states=40, seed=seed) for seed in (0, 0, 1))
    assert len(first.states) == 40
    assert (first.states == again.states).all() and (first.states != other.states).any()
    assert first.verdicts == again.verdicts
    chosen = x[first.states]
    assert first["floor"].value == pytest.approx(1) and first["triangle"].n == len(chosen) * 39


def test_the_histogram_counts_every_pair() -> None:
    found = audit(squared_l2, points(30))
    assert found.gaps.counts.sum() == 30 * 29 and len(found.gaps.edges) == len(found.gaps.counts) + 1


def test_infinite_energies_obey_or_break_the_triangle() -> None:
    line = one_way_line()
    assert failed(audit(line)) == set()
    line[0, 4] = np.inf  # though there is a way
    broken = audit(line)["triangle"]
    assert broken.passed is False and broken.value == 1 and "from state 0 to state 4 is inf" in broken.advice


def test_rounding_to_float32_is_no_violation() -> None:
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
def test_random_matrices_are_judged_as_all_triples_say(size: int, seed: int, gaps: bool) -> None:
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
        (np.ones((3, 4)), None, "must be square"),
        (np.array([[0, np.nan], [1, 0]]), None, "from state 0 to state 1"),
        (np.zeros((1, 1)), None, "at least 2 states"),
        (np.full((2, 2), "a"), None, "real numbers"),
        (l2, None, "needs points"),
        (l2, points(1), "at least 2 states"),
        (l2, points(0), "at least 2 states"),
        (l2, np.ones(3), "rows of numbers"),
        (l2, np.array([[1.0], [np.inf]]), "points"),
        (np.zeros((3, 3)), points(4), "3 rows of energies and 4 rows of points"),
        ("an energy", None, "square matrix or a function"),
        (lambda x, y: 1.0 * x, points(5), "one number for each pair"),
        (lambda x, y: l2(x, y) * np.nan, points(5), "NaN"),
        (PredictionError(width=3), points(5), "width 4"),
    ],
)
def test_what_cannot_be_audited_is_refused(energy: Any, given_points: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        audit(energy, given_points)


def test_truth_must_be_of_the_same_states_and_not_negative() -> None:
    with pytest.raises(InputError, match="true energies"):
        audit(np.zeros((3, 3)), truth=np.zeros((2, 2)))
    with pytest.raises(InputError, match="cannot be negative"):
        audit(np.zeros((2, 2)), truth=-np.ones((2, 2)))
