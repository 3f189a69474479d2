"""Calibration verdicts against unweighted statistics of the reachable pairs."""

from __future__ import annotations

import numpy as np
import pytest
from energy.audit.energies import l2, one_way_line, points
from scipy.stats import rankdata

from jepatlas.energy.audit import audit
from jepatlas.energy.audit.weighted_statistics import WeightedQuantiles, WeightedRanks, weighted_spearman

X = points(40)
TRUTH = l2(X[:, None], X[None])
OTHERS = ~np.eye(len(X), dtype=bool)


def correlated_ranks(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def test_values_match_unweighted_statistics() -> None:
    noisy = TRUTH * np.exp(0.3 * np.random.default_rng(0).standard_normal(TRUTH.shape))
    found, ratio = audit(noisy, truth=TRUTH), (noisy / np.where(OTHERS, TRUTH, 1))[OTHERS]
    assert found["spearman"].value == pytest.approx(correlated_ranks(noisy[OTHERS], TRUTH[OTHERS]))
    assert found["median_ratio"].value == pytest.approx(np.median(ratio))
    assert found["calibration_error"].value == pytest.approx(np.exp(np.median(np.abs(np.log(ratio)))) - 1)
    for name, level in (("ratio_5", 0.05), ("ratio_95", 0.95)):
        assert found[name].value == pytest.approx(np.quantile(ratio, level, method="hazen"))
        assert found[name].low <= found[name].value <= found[name].high


def test_a_rescaled_energy_has_the_right_order_and_the_wrong_scale() -> None:
    found = audit(1.5 * TRUTH, truth=TRUTH)
    assert found["spearman"].passed and found["spearman"].value == pytest.approx(1)
    assert found["calibration_error"].passed is False and found["calibration_error"].value == pytest.approx(0.5)
    assert found["median_ratio"].value == pytest.approx(1.5)
    assert "1.500" in found["calibration_error"].advice


def test_the_worst_pair_is_named() -> None:
    off = TRUTH.copy()
    off[7, 3] *= 40
    assert "from state 7 to state 3" in audit(off, truth=TRUTH)["calibration_error"].advice


def test_only_reachable_pairs_count() -> None:
    truth = one_way_line(8)
    learned = np.where(np.isfinite(truth), 2 * truth, 1.0)
    found = audit(learned, truth=truth)
    assert found["median_ratio"].value == found["ratio_5"].value == found["ratio_95"].value == 2
    inverted = np.where(np.isfinite(truth), np.inf, 1.0)
    assert audit(inverted, truth=truth)["calibration_error"].passed is False
    assert audit(inverted, truth=truth)["median_ratio"].value == np.inf


def test_the_curve_follows_the_energies() -> None:
    curve = audit(TRUTH**2, truth=TRUTH).curve
    assert curve is not None and len(curve.truth) == 20
    assert curve.median == pytest.approx(curve.truth**2, rel=0.05)
    assert (curve.low <= curve.median).all() and (curve.median <= curve.high).all()
    steps = one_way_line(8)
    few = audit(steps, truth=steps).curve
    assert few is not None and len(few.truth) <= 7  # at most one bin per distinct distance


def test_integer_weights_equal_repetitions() -> None:
    rng = np.random.default_rng(0)
    x, y, counts = rng.integers(0, 9, 30).astype(float), rng.standard_normal(30), rng.integers(0, 4, 30)
    repeated = [np.repeat(part, counts) for part in (x, y)]
    found = weighted_spearman(WeightedRanks(x), WeightedRanks(y), counts.astype(float))
    assert found == pytest.approx(correlated_ranks(*repeated))
    assert WeightedQuantiles(x)(counts.astype(float), [0.5])[0] == pytest.approx(np.median(repeated[0]), abs=1)


def test_a_truth_without_reachable_pairs_is_not_compared() -> None:
    apart = np.where(np.eye(5, dtype=bool), 0.0, np.inf)
    found = audit(np.ones((5, 5)), truth=apart)
    assert found.curve is None and not any(verdict.name == "spearman" for verdict in found.verdicts)
