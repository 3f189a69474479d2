"""Linear recovery against plain computations on the same split, and on maps with known results."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.linalg

from jepatlas.core.errors import InputError
from jepatlas.core.linear import Split, hold_out, whitener
from jepatlas.identifiability import adjusted, linear_response, recovery, recovery_null


def gaussian(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, dim))


def rotation(dim: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(gaussian(dim, dim, seed))[0]


def split_of(rows: int) -> Split:
    return hold_out(rows, np.random.default_rng(1))


def values(h: np.ndarray, z: np.ndarray) -> dict[str, float]:
    estimates = recovery(h, z, split_of(len(h)), np.random.default_rng(2), replicates=2)
    return {name: estimate.value for name, estimate in estimates.items()}


def slow_recovery(h: np.ndarray, z: np.ndarray, split: Split) -> dict[str, float]:
    def predicted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with_one = np.c_[x, np.ones(len(x))]
        weight = np.linalg.lstsq(with_one[split.fit], y[split.fit], rcond=None)[0]
        return with_one[split.score] @ weight

    def explained(x: np.ndarray, y: np.ndarray) -> float:
        truth = y[split.score]
        return 1 - np.sum((truth - predicted(x, y)) ** 2) / np.sum((truth - truth.mean(0)) ** 2)

    def whitening(x: np.ndarray) -> np.ndarray:
        return np.linalg.inv(np.atleast_2d(scipy.linalg.sqrtm(np.atleast_2d(np.cov(x[split.fit].T, bias=True)))))

    def response(x: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.linalg.lstsq(x[rows] - x[rows].mean(0), y[rows] - y[rows].mean(0), rcond=None)[0].T

    def far_from_orthogonal(one: np.ndarray, other: np.ndarray) -> float:
        gram = (one.T @ other + other.T @ one) / 2
        return float(np.linalg.norm(gram - np.eye(len(gram))) / math.sqrt(len(gram)))

    def correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.corrcoef(one.T, other.T)[: one.shape[1], one.shape[1] :]

    def best_matched() -> float:
        """Best mean correlation over all assignments."""
        before, after = (correlations(z[rows], h[rows]) for rows in split)
        places = np.arange(z.shape[1])
        chosen = max(itertools.permutations(places), key=lambda p: np.abs(before[places, p]).sum())
        return float(np.mean(np.sign(before[places, chosen]) * after[places, chosen]))

    def stretched(*units: np.ndarray) -> float:
        """Stretch in the units (raw or white) for which the first half gives the smaller value."""
        first, second = (response(z, h, rows) for rows in split)

        def spread(one: np.ndarray, other: np.ndarray) -> float:
            values = np.linalg.eigvalsh((one.T @ other + other.T @ one) / 2)
            return float(np.abs(values / np.abs(values).mean() - 1).max())

        within = [spread(first @ unit, first @ unit) for unit in units]
        unit = units[int(np.argmin(within))]
        return spread(first @ unit, second @ unit)

    z_mean, h_mean = z[split.fit].mean(0), h[split.fit].mean(0)
    turn, _ = scipy.linalg.orthogonal_procrustes(z[split.fit] - z_mean, h[split.fit] - h_mean)
    misfit = (h[split.score] - h_mean) - (z[split.score] - z_mean) @ turn
    white_z, white_h = z @ whitening(z), h @ whitening(h)
    linear, rows = predicted(h, z), len(split.fit)
    price = (1 + 1 / rows) * (1 + h.shape[1] / (rows - h.shape[1] - 2))  # of an intercept, and of the coefficients
    return {
        "r2": explained(h, z),
        "r2_adjusted": 1 - (1 - explained(h, z)) / price,
        "r2_inverse": explained(z, h),
        "mcc": best_matched(),
        "mcc_linear": float(
            np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(linear.T, z[split.score].T, strict=True)])
        ),
        "procrustes": float(np.mean(np.sum(misfit**2, axis=1))),
        "orthogonality": far_from_orthogonal(*(response(white_z, white_h, rows) for rows in split)),
        "orthogonality_raw": far_from_orthogonal(*(response(z, h, rows) for rows in split)),
        "stretch": stretched(np.eye(z.shape[1]), np.linalg.inv(whitening(z))),
    }


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_metrics_match_plain_computations(dim: int):
    z = gaussian(200, dim) * np.linspace(0.5, 2, dim) + 4
    h = np.tanh(z @ rotation(dim)) * 2 + 0.2 * gaussian(200, dim, seed=1) - 7
    split = split_of(200)
    estimates = recovery(h, z, split, np.random.default_rng(0), replicates=50)
    expected = slow_recovery(h, z, split)
    assert {name: estimate.value for name, estimate in estimates.items()} == pytest.approx(expected, rel=1e-8)
    for estimate in estimates.values():
        assert estimate.low < estimate.high and estimate.n == len(split.score)
    white = whitener(h)
    both = recovery(h, z, split, np.random.default_rng(0), white=white, replicates=2)
    alone = recovery(white.apply(h), z, split, np.random.default_rng(0), replicates=2)
    assert both["procrustes_whitened"].value == pytest.approx(alone["procrustes"].value, rel=1e-9)
    assert both["procrustes"].value == pytest.approx(expected["procrustes"])


def test_linear_response_of_weighted_rows():
    x, y = gaussian(30, 2), gaussian(30, 3, seed=1)
    counts = np.random.default_rng(0).multinomial(30, np.full(30, 1 / 30))
    repeated = [np.repeat(v - np.average(v, axis=0, weights=counts), counts, axis=0) for v in (x, y)]
    raw, whitened = linear_response(x, y, counts)
    np.testing.assert_allclose(raw, np.linalg.lstsq(repeated[0], repeated[1], rcond=None)[0].T, atol=1e-10)
    xx, yy = (np.cov(v, rowvar=False, bias=True) for v in repeated)
    expected = np.linalg.inv(scipy.linalg.sqrtm(yy)) @ raw @ scipy.linalg.sqrtm(xx)
    np.testing.assert_allclose(whitened, expected, atol=1e-10)
    np.testing.assert_allclose(linear_response(x, y)[0], linear_response(x, y, np.ones(30))[0])


@pytest.mark.parametrize("dim", [1, 3, 16])
def test_rotation(dim: int):
    z = gaussian(400, dim)
    found = values(z @ rotation(dim).T + 3, z)
    assert found["r2"] == pytest.approx(1) and found["r2_inverse"] == pytest.approx(1)
    assert max(found["procrustes"], found["orthogonality"], found["orthogonality_raw"]) < 1e-9


def test_scaling_is_a_rotation_only_after_whitening():
    z = gaussian(400, 3)
    found = values(3 * z, z)
    assert found["r2"] == pytest.approx(1) and found["orthogonality"] < 1e-9
    assert found["orthogonality_raw"] == pytest.approx(8)  # ‖9I − I‖/‖I‖
    assert found["procrustes"] == pytest.approx(12, rel=0.15)  # ‖3z − z‖² = 4·3
    assert found["stretch"] < 1e-9


def test_state_units_cause_no_stretch_for_raw_or_white_latents():
    z = gaussian(400, 3) * np.array([0.1, 1.0, 30.0]) @ rotation(3, seed=4)
    white = np.linalg.inv(np.real(scipy.linalg.sqrtm(np.cov(z.T))))
    assert values(z @ rotation(3), z)["stretch"] < 1e-9
    assert values(z @ white @ rotation(3), z)["stretch"] < 0.4  # the whitening was fitted on all rows, not on this half
    assert values(np.array([1.0, 1.0, 3.0]) * z, z)["stretch"] > 0.7


def test_mcc_is_invariant_to_permutations_and_signs_but_not_rotations():
    z = gaussian(4000, 3)
    assert values(-z[:, [2, 0, 1]], z)["mcc"] == pytest.approx(1)
    turned = values(z @ rotation(3, seed=2), z)
    assert turned["mcc"] < 0.95 and turned["mcc_linear"] == pytest.approx(1)
    fewer = values(z[:, :2], z)
    assert fewer["mcc"] == pytest.approx(2 / 3, abs=0.01)  # a state without a matched latent counts zero
    assert abs(values(gaussian(4000, 3, seed=9), z)["mcc"]) < 0.05


def test_adjusted_r2_is_unbiased_for_few_rows():
    """z = (h₀ + e)/√2 and nine unrelated latents: the best linear map has R² 0.5."""
    split = Split(np.arange(35), np.arange(35, 1500))
    errors = {"r2": [], "r2_adjusted": []}
    for seed in range(200):
        h, e = gaussian(1500, 10, seed=2 * seed), gaussian(1500, 1, seed=2 * seed + 1)
        found = recovery(h, (h[:, :1] + e) / math.sqrt(2), split, np.random.default_rng(0), replicates=1)
        for name, values_ in errors.items():
            values_.append(1 - found[name].value)
    assert np.mean(errors["r2_adjusted"]) == pytest.approx(0.5, abs=0.02)
    assert np.mean(errors["r2"]) > 0.68
    assert math.isnan(adjusted(0.5, 12, 10))


def test_shear_is_linear_but_not_a_rotation():
    z = gaussian(4000, 2)
    found = values(z @ np.array([[1.0, 1.5], [0.0, 1.0]]), z)
    assert found["r2"] == pytest.approx(1) and found["orthogonality"] < 1e-9 and found["orthogonality_raw"] > 0.5
    # WᵀW has the eigenvalues (17 ± 15)/8, with mean 17/8
    assert found["stretch"] == pytest.approx(15 / 17, abs=0.03)


def test_cubic_warp():
    z = gaussian(20_000, 2)
    found = values(z**3 / math.sqrt(15), z)
    # Corr(z, z³) = 3/√15, so R² is 0.6 both ways.
    assert found["r2"] == pytest.approx(0.6, abs=0.03) and found["r2_inverse"] == pytest.approx(0.6, abs=0.03)
    assert found["orthogonality"] == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(("rows", "dim"), [(2000, 3), (60, 8), (40, 8), (140, 64)])
def test_scramble_has_zero_r2_for_few_rows(rows: int, dim: int):
    found = values(gaussian(rows, dim), gaussian(rows, dim, seed=1))
    assert found["r2"] < 0.05 and found["r2_inverse"] < 0.05
    assert found["orthogonality"] > 0.9 and found["orthogonality_raw"] > 0.9


def test_missing_dimension():
    z = gaussian(4000, 3)
    found = values(z[:, :2], z)
    assert found["r2"] == pytest.approx(2 / 3, abs=0.03) and found["r2_inverse"] == pytest.approx(1)
    assert found["orthogonality"] == pytest.approx(1 / math.sqrt(3), abs=0.02)


def test_surplus_dimension_lowers_the_inverse_r2():
    z = gaussian(4000, 2)
    noise = gaussian(4000, 1, seed=5)
    found = values(np.c_[z, noise], z)
    assert found["r2"] == pytest.approx(1, abs=1e-3) and found["r2_inverse"] == pytest.approx(2 / 3, abs=0.03)
    copied = values(np.c_[z, z[:, :1]], z)  # more columns, but no further information
    assert copied["r2"] == pytest.approx(1) and copied["r2_inverse"] == pytest.approx(1)
    assert copied["orthogonality"] < 1e-9


@pytest.mark.parametrize("level", [0.0, 0.8, 1e6])
def test_collapsed_dimension(level: float):
    z = gaussian(400, 2)
    found = values(np.c_[z[:, 0], np.full(400, level)], z)
    assert found["r2"] == pytest.approx(0.5, abs=0.1) and found["orthogonality"] == pytest.approx(1 / math.sqrt(2))


@pytest.mark.parametrize("level", [0.0, 0.8, 1e6])
def test_constant_latents(level: float):
    found = values(np.full((400, 2), level), gaussian(400, 2))
    assert found["r2"] <= 0 and math.isnan(found["r2_inverse"])
    assert found["orthogonality"] == 1 and found["orthogonality_raw"] == 1


def test_null_matches_a_scramble():
    z = gaussian(2000, 3)
    null = recovery_null(z, z, split_of(2000), np.random.default_rng(0))
    assert null["r2"] == pytest.approx(0, abs=0.02) and null["orthogonality"] == pytest.approx(1, abs=0.05)
    assert null["procrustes"] == pytest.approx(6, rel=0.1)  # E‖h − Qz‖² of independent h and z


def test_intervals_cover_the_truth():
    """h = z + e/2: R² = 0.8 both ways. Of 60 intervals at 95%, 57 ± 1.7 should cover."""
    covered = {"r2": 0, "procrustes": 0}
    for seed in range(60):
        z, e = gaussian(1000, 2, seed=3 * seed), gaussian(1000, 2, seed=3 * seed + 1)
        split = hold_out(1000, np.random.default_rng(seed))
        found = recovery(z + e / 2, z, split, np.random.default_rng(seed), replicates=150)
        covered["r2"] += found["r2"].low <= 0.8 <= found["r2"].high
        covered["procrustes"] += found["procrustes"].low <= 0.5 <= found["procrustes"].high
    assert covered["r2"] >= 50 and covered["procrustes"] >= 50


def test_copied_rows_do_not_narrow_intervals():
    z, e = gaussian(200, 2), gaussian(200, 2, seed=1)
    h = z + e / 2
    groups = np.random.default_rng(2).permutation(np.repeat(np.arange(200), 10))  # neighbours are resampled together
    plain = split_of(200)
    split = Split(*(np.flatnonzero(np.isin(groups, side)) for side in plain))

    def width(labels: np.ndarray | None) -> float:
        rng = np.random.default_rng(0)
        found = recovery(h[groups], z[groups], split, rng, groups=labels, replicates=300)["r2"]
        return found.high - found.low

    rng = np.random.default_rng(0)
    honest = recovery(h, z, plain, rng, replicates=300)["r2"]
    assert width(groups) == pytest.approx(honest.high - honest.low, rel=0.15)
    assert width(None) < 0.5 * width(groups)


@pytest.mark.parametrize(
    ("h", "z", "split", "message"),
    [
        (np.full((30, 2), np.nan), np.ones((30, 2)), (10, 30), "'h' has 60 NaN"),
        (np.ones((30, 2)), np.ones((29, 2)), (10, 29), "'h' has 30, 'z' has 29"),
        (np.ones(30), np.ones((30, 2)), (10, 30), "'h'.*2-D"),
        (np.ones((30, 2)), np.ones((30, 2)), (10, 31), "split.score.* 30"),
        (np.ones((30, 2)), np.ones((30, 2)), (0, 30), "split.fit.* 30"),
    ],
)
def test_invalid_inputs_are_rejected(h: np.ndarray, z: np.ndarray, split: tuple[int, int], message: str):
    parts = Split(np.arange(split[0]), np.arange(split[0], split[1]))
    with pytest.raises(InputError, match=message):
        recovery(h, z, parts, np.random.default_rng(0), replicates=5)
