"""AUC against its definition, and the ceiling of symmetric scores."""

from __future__ import annotations

import numpy as np
import pytest
from energy.audit.energies import one_way_line
from hypothesis import given, settings
from hypothesis import strategies as st

from jepatlas.energy.audit import Audit, audit, symmetric_ceiling


def two_floors(size: int = 5) -> np.ndarray:
    """Two cliques, the second reachable from the first but not back, and a third that is disconnected."""
    floor = np.repeat([0, 1, 2], size)
    way = (floor[:, None] == floor) | ((floor[:, None] == 0) & (floor == 1))
    cost = np.where(floor[:, None] == floor, 1.0, 3.0)
    np.fill_diagonal(cost, 0)
    return np.where(way, cost, np.inf)


def auc_by_definition(scores: np.ndarray, unreachable: np.ndarray) -> float:
    above, below = scores[unreachable][:, None], scores[~unreachable][None]
    return float(np.mean((above > below) + 0.5 * (above == below)))


def random_scores(size: int, seed: int, levels: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, levels, (size, size)).astype(float)


@given(st.integers(0, 2**31), st.integers(1, 6))
@settings(max_examples=8, deadline=None)
def test_auc_matches_its_definition(seed: int, levels: int) -> None:
    truth = two_floors(3)
    scores = random_scores(len(truth), seed, levels)
    others, one_way = ~np.eye(len(truth), dtype=bool), np.isfinite(truth) & np.isinf(truth.T)
    found, both = audit(scores, truth=truth), one_way | one_way.T
    unreachable = np.isinf(truth)
    assert found["reachability_auc"].value == pytest.approx(auc_by_definition(scores[others], unreachable[others]))
    assert found["one_way_auc"].value == pytest.approx(auc_by_definition(scores[both], unreachable[both]))
    there, back = scores[one_way], scores.T[one_way]
    assert found["one_way_order"].value == pytest.approx(np.mean((back > there) + 0.5 * (back == there)))


@given(st.integers(0, 2**31))
@settings(max_examples=8, deadline=None)
def test_a_symmetric_score_has_auc_one_half_on_one_way_pairs(seed: int) -> None:
    truth = two_floors(3)
    scores = random_scores(len(truth), seed, 50)
    found = audit(scores + scores.T, truth=truth)
    for name in ("one_way_auc", "one_way_order"):
        verdict = found[name]
        assert verdict.value == pytest.approx(0.5) and verdict.low == pytest.approx(verdict.high)
        assert verdict.passed is False
    assert found["reachability_auc"].value <= symmetric_ceiling(truth) + 1e-12
    assert found["reachability_auc"].null == symmetric_ceiling(truth)


def test_the_best_symmetric_score_attains_the_ceiling() -> None:
    truth = two_floors()
    best = np.isinf(truth).astype(float) + np.isinf(truth.T)
    assert audit(best, truth=truth)["reachability_auc"].value == pytest.approx(symmetric_ceiling(truth))
    assert symmetric_ceiling(truth) < 1


def test_the_ceiling_follows_from_the_share_of_one_way_pairs() -> None:
    truth = one_way_line(12)  # all pairs are one-way
    assert symmetric_ceiling(truth) == 0.5
    truth = np.ones((4, 4))
    truth[0, 1] = np.inf  # one of twelve ordered pairs; the reverse is one of the eleven others
    assert symmetric_ceiling(truth) == pytest.approx(1 - 0.5 / 11)
    assert np.isnan(symmetric_ceiling(np.ones((3, 3))))


def test_the_worst_pair_is_named() -> None:
    truth = two_floors()
    assert audit(truth, truth=truth).passed
    finite = np.where(np.isinf(truth), 3.0, truth)
    finite[12, 3] = 0.5  # from the disconnected clique to the first
    found = audit(finite, truth=truth)["reachability_auc"]
    assert found.passed is False and "from state 12 to state 3" in found.advice
    symmetric = np.where(np.isinf(truth), 3.0, truth)
    symmetric[7, 2] = 1.0  # one pair has the wrong order
    found = audit(symmetric, truth=truth)["one_way_auc"]
    assert found.passed is False and "from state 2 to state 7" in found.advice


def test_only_symmetric_energies_are_advised_to_use_a_quasimetric_head() -> None:
    truth = two_floors()
    finite = np.where(np.isinf(truth), 3.0, truth)
    found = audit(finite, truth=truth)["one_way_auc"]
    assert found.passed is False and "quasimetric head" in found.advice
    tilted = finite + np.triu(np.full(truth.shape, 0.5), 1)
    found = audit(tilted, truth=truth)["one_way_auc"]
    assert found.passed is False and "quasimetric head" not in found.advice


def test_the_area_under_the_curve_is_the_auc() -> None:
    truth = two_floors()
    found = audit(random_scores(len(truth), 0, 7), truth=truth)
    for roc, name in ((found.roc, "reachability_auc"), (found.one_way_roc, "one_way_auc")):
        assert roc is not None
        assert (roc.true_positive_rate[0], roc.false_positive_rate[0]) == (0, 0)
        assert (roc.true_positive_rate[-1], roc.false_positive_rate[-1]) == (1, 1)
        assert np.trapezoid(roc.true_positive_rate, roc.false_positive_rate) == pytest.approx(found[name].value)


def test_intervals_contain_the_value_and_shrink_with_the_number_of_states() -> None:
    def width(size: int) -> float:
        truth = two_floors(size)
        noisy = np.where(np.isinf(truth), 2.0, 1.0) + np.random.default_rng(0).standard_normal(truth.shape)
        verdict = audit(np.abs(noisy), truth=truth)["reachability_auc"]
        assert verdict.low <= verdict.value <= verdict.high
        return verdict.high - verdict.low

    assert width(40) < width(8) / 1.5


def test_no_auc_if_all_pairs_are_reachable() -> None:
    found: Audit = audit(np.ones((4, 4)), truth=np.ones((4, 4)))
    assert found.roc is None and not any("auc" in verdict.name for verdict in found.verdicts)
