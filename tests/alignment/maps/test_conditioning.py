"""Conditioning of maps, compared with numpy and with known maps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jepatlas.alignment.maps.conditioning import Conditioning
from jepatlas.alignment.maps.map_estimators import LeastSquaresMap, ProcrustesMap, RidgeMap, StreamedMap
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.alignment.probes.probe_migration import support
from jepatlas.core.linear import orthogonality_error
from jepatlas.core.linear_map import LinearMap
from jepatlas.core.linear_moments import PairMoments
from jepatlas.core.records import Verdict


def plain(weight: np.ndarray) -> LinearMap:
    return LinearMap(weight, np.zeros(weight.shape[1]), np.zeros(weight.shape[0]))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_values_match_numpy(d_in, d_out, seed):
    weight = np.random.default_rng(seed).normal(size=(d_out, d_in))
    found = Conditioning.of(plain(weight))
    narrow = weight if d_out >= d_in else weight.T
    np.testing.assert_allclose(found.singular_values, np.linalg.svd(weight)[1])
    assert found.condition == pytest.approx(np.linalg.cond(weight))
    assert found.rank == min(d_in, d_out) == np.linalg.matrix_rank(weight)
    assert found.orthogonality_raw == pytest.approx(orthogonality_error(narrow))
    share = np.linalg.eigvalsh(narrow.T @ narrow) / np.square(weight).sum()
    assert found.effective_rank == pytest.approx(math.exp(-sum(p * math.log(p) for p in share)))
    sign = None if d_in != d_out else int(np.sign(np.linalg.det(weight)))
    assert found.determinant_sign == sign
    assert found.orthogonality is None and found.source_rank is None


def test_rotations_reflections_and_similarities():
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    q[:, 0] *= np.sign(np.linalg.det(q))
    turned, mirrored = Conditioning.of(plain(q)), Conditioning.of(plain(-q))
    assert turned.determinant_sign == 1 and mirrored.determinant_sign == -1
    assert turned.orthogonality_raw < 1e-12 and turned.condition == pytest.approx(1)
    assert turned.effective_rank == pytest.approx(5)
    grown = Conditioning.of(plain(3 * q))
    assert grown.orthogonality_raw == pytest.approx(8) and grown.orthogonality_scaled < 1e-12
    assert Conditioning.of(plain(q[:3])).orthogonality_raw < 1e-12  # to a narrower target


def test_orthogonality_is_measured_in_raw_and_whitened_coordinates():
    """A rotation of stretched latents is orthogonal in raw coordinates; a shear only in whitened coordinates."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3)) * [1, 5, 20]
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = LeastSquaresMap(standardise=True).fit(x, x @ q.T)
    assert orthogonality_error(turned.map_.weight) > 0.1
    assert turned.conditioning_.orthogonality_raw < 1e-9
    sheared = LeastSquaresMap(standardise=True).fit(x, x @ rng.normal(size=(3, 3))).conditioning_
    assert sheared.orthogonality_raw > 0.1 and sheared.orthogonality is not None and sheared.orthogonality < 1e-6
    unrelated = LeastSquaresMap().fit(x, rng.normal(size=(3000, 3))).conditioning_
    assert unrelated.orthogonality == pytest.approx(1, abs=0.01)


def test_zero_map():
    nothing = Conditioning.of(plain(np.zeros((3, 3))))
    assert nothing.condition == math.inf and nothing.rank == 0 and nothing.determinant_sign == 0
    assert nothing.effective_rank == 0 and nothing.orthogonality_raw == nothing.orthogonality_scaled == 1


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize(
    "estimator",
    [RidgeMap(), RidgeMap(1e-6), RidgeMap(1e-9), RidgeMap(1e-3, standardise=True), LeastSquaresMap()],
    ids=repr,
)
def test_rank_ignores_rounding_noise(estimator: StreamedMap, noise: float):
    """With a small penalty, rounding noise in constant directions is 1e-13 to 1e-5 of the map instead of 1e-16."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 16)) + 2
    y = x @ rng.normal(size=(16, 16)) + noise * rng.normal(size=(500, 16))
    found = estimator.fit(x, y).conditioning_
    assert found.rank == found.source_rank == 3 and found.condition == math.inf
    assert not found.singular_values[3:].any()
    probe = LinearProbe.fit(x, (x[:, 0] > 2).astype(int))
    assert support(probe, estimator.map_, latents=x).condition == math.inf


def test_rank_of_rotations_and_of_maps_without_offset():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 4))
    turned = ProcrustesMap().fit(flat, flat).conditioning_
    assert turned.source_rank == 2 and turned.rank == 4 and turned.condition == pytest.approx(1)
    x = np.hstack([rng.normal(size=(100, 2)), np.ones((100, 1))])
    raw = RidgeMap(1e-3, offset=False).fit(x, x * [1, 1, 0.01]).conditioning_
    assert raw.source_rank == 2 and raw.rank == 3 and raw.condition == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("estimator", [RidgeMap(1.0), LeastSquaresMap(), ProcrustesMap()], ids=repr)
def test_no_prior_is_recommended_for_constant_latents(estimator: StreamedMap):
    x, still = np.random.default_rng(0).normal(size=(50, 3)), np.full((50, 3), 0.3)
    for side, pair in (("target", (x, still)), ("source", (still, x))):
        for name, verdict in verdicts_by_name(estimator.fit(*pair).conditioning_, 50).items():
            assert "Procrustes" not in verdict.advice and "Ridge" not in verdict.advice
            if name in {"map_rank", "condition"} and not verdict.passed:
                assert f"The {side} does not vary" in verdict.advice


def verdicts_by_name(found: Conditioning, n: int) -> dict[str, Verdict]:
    return {verdict.name: verdict for verdict in found.verdicts(n)}


def test_well_conditioned_map_passes_all_verdicts():
    x = np.random.default_rng(0).normal(size=(200, 4))
    verdicts = verdicts_by_name(LeastSquaresMap().fit(x, x[:, ::-1]).conditioning_, 200)
    decided = [verdict for verdict in verdicts.values() if verdict.threshold is not None]
    assert len(decided) == 6 and all(verdict.passed for verdict in decided)
    assert {"orthogonality", "effective_rank", "determinant_sign"} == {v.name for v in verdicts.values()} - {
        v.name for v in decided
    }
    assert all(verdict.n == 200 for verdict in verdicts.values())


def test_degenerate_latents_fail_verdicts_without_errors():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 6))
    x[:, 5] = x[:, 0] + x[:, 1]
    y = np.hstack([x[:, :3], np.full((50, 1), 0.7)])
    x[:, 4] = 0.3
    failed = {
        name: verdict.advice
        for name, verdict in verdicts_by_name(LeastSquaresMap().fit(x, y).conditioning_, 50).items()
        if verdict.passed is False
    }
    assert set(failed) == {"constant_source", "constant_target", "source_rank", "map_rank", "condition"}
    assert failed["constant_source"].startswith("1 of 6 source dimensions")
    assert failed["constant_target"].startswith("1 of 4 target dimensions")
    assert "4 of 6 directions" in failed["source_rank"]
    assert "3 of 4 directions" in failed["map_rank"]
    assert "rotation" in failed["map_rank"]
    few = verdicts_by_name(ProcrustesMap().fit(x[:6], y[:6]).conditioning_, 6)["pairs_beyond_dimensions"]
    assert few.passed is False and "penalty" in few.advice and few.advice.startswith("6 pairs for 6 source")
    assert verdicts_by_name(LeastSquaresMap().fit(x[:7], y[:7]).conditioning_, 7)["pairs_beyond_dimensions"].passed


def test_condition_threshold_is_the_limit_of_the_inverse():
    stretched = plain(np.diag([1.0, 1e-3]))
    moments = PairMoments.of(*np.random.default_rng(0).normal(size=(2, 20, 2)))
    assert verdicts_by_name(Conditioning.of(stretched, moments, 1e4), 20)["condition"].passed
    assert not verdicts_by_name(Conditioning.of(stretched, moments, 1e2), 20)["condition"].passed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_direction_removed_by_layer_normalisation_is_not_lost(dtype: type):
    """If h = γ n + β with Σ n = 0, then Σ h/γ is constant for any γ."""
    rng = np.random.default_rng(0)
    inner = rng.normal(size=(2000, 16)) * np.linspace(0.5, 3, 16)

    def normed(x: np.ndarray) -> np.ndarray:
        unit = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        return (unit * np.linspace(0.4, 2, 16) + rng.normal(size=16)).astype(dtype)

    a, b = normed(inner), normed(inner @ rng.normal(size=(16, 16)))
    for estimator in (LeastSquaresMap(), RidgeMap(), RidgeMap(standardise=True)):
        found = estimator.fit(a, b).conditioning_
        verdicts = {verdict.name: verdict for verdict in found.verdicts(2000)}
        assert found.normed == (True, True) and found.full == 15 and found.condition < 1e4
        assert all(verdicts[name].passed for name in ("source_rank", "map_rank", "condition"))
        assert (
            "layer normalisation" in verdicts["source_rank"].advice
            and "layer normalisation" in verdicts["map_rank"].advice
        )
    wide = LeastSquaresMap().fit(a, rng.normal(size=(2000, 20)) + b @ rng.normal(size=(16, 20))).conditioning_
    assert wide.normed == (True, False) and wide.full == 15


def test_directions_missing_for_other_reasons_are_lost():
    """Such a direction has weights of both signs, or, for a constant or repeated column, few non-zero weights."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 500, 16))
    away = np.linalg.qr(rng.normal(size=(16, 1)))[0]
    flat, repeated = x.copy(), x.copy()
    flat[:, 3], repeated[:, 4] = 2.0, x[:, 5]
    for lacking in (x - x @ away @ away.T, flat, repeated):
        found = LeastSquaresMap().fit(lacking, y).conditioning_
        failed = {verdict.name for verdict in found.verdicts(500) if verdict.passed is False}
        assert found.normed == (False, False) and {"source_rank", "map_rank", "condition"} <= failed
