"""Certificate: accepts rotations, rejects all other maps, and validates its input."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from jepatlas.core.errors import InputError
from jepatlas.core.records import Estimate, Verdict
from jepatlas.identifiability import bound_terms, certify, diagnose, find_trajectories, nonlinear_rho

RHO = 0.9
JUDGED = {"diagnosis", "r2", "r2_inverse", "orthogonality", "stretch", "effective_rank", "coverage"}
SHARES = {f"share_{name}" for name in ("linear", "warp", "shear", "bend", "noise")}
WITH_TRUTH = (
    JUDGED
    | SHARES
    | {
        "orthogonality_raw",
        "procrustes",
        "procrustes_whitened",
        "r2_adjusted",
        "r2_nonlinear",
        "mcc",
        "mcc_linear",
        "repeated_coordinates",
        "degree_1",
        "worst_nonlinear",
        "worst_noise",
    }
)
DEGREES = {f"degree_{d}" for d in ("2", "3", "4", "5", "beyond")}
WITHOUT = {f"{name}{form}" for name in ("epsilon", "delta", "gap", "bound") for form in ("", "_whitened")}
THEOREM = {"error_to_bound", "error_to_bound_whitened"}


def pairs(rows: int = 3000, dim: int = 3, seed: int = 0, rho: float = RHO) -> tuple[np.ndarray, np.ndarray]:
    z, noise = np.random.default_rng(seed).standard_normal((2, rows, dim))
    return z, rho * z + math.sqrt(1 - rho**2) * noise


TURN = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 3)))[0]


def verdicts_of(encode: Callable[[np.ndarray], np.ndarray], rows: int = 3000, **options) -> dict[str, Verdict]:
    z, z_next = pairs(rows)
    given = {"z": z, "rho": RHO, "replicates": 60} | options
    return {verdict.name: verdict for verdict in certify(encode(z), encode(z_next), **given)}


def accepted(verdicts: dict[str, Verdict]) -> bool:
    return all(verdict.passed is not False for verdict in verdicts.values())


def test_rotation_is_accepted():
    verdicts = verdicts_of(lambda z: z @ TURN, rows=40_000)
    assert accepted(verdicts) and verdicts.keys() == WITH_TRUTH | DEGREES | WITHOUT | THEOREM
    judged = {name for name, verdict in verdicts.items() if verdict.passed}
    assert judged == JUDGED | {"bound", "bound_whitened"}
    assert verdicts["r2"].value == pytest.approx(1) and verdicts["orthogonality"].value < 1e-9
    assert verdicts["r2"].null is not None and abs(verdicts["r2"].null) < 0.05
    assert verdicts["r2"].n == 20_000
    assert accepted(verdicts_of(lambda z: z @ TURN + 100))  # independent of the origin


def test_verdicts_depend_on_the_given_arrays():
    assert verdicts_of(lambda z: z, rho=None).keys() == WITH_TRUTH | DEGREES
    assert verdicts_of(lambda z: z, z=None).keys() == WITHOUT
    assert verdicts_of(lambda z: z, z=None, rho=None).keys() == WITHOUT


def scramble(z: np.ndarray) -> np.ndarray:
    return np.random.default_rng(3).permutation(z)


REJECTED: dict[str, tuple[Callable[[np.ndarray], np.ndarray], set[str]]] = {
    "cubic warp": (lambda z: z**3 / math.sqrt(15), {"r2", "r2_inverse", "orthogonality", "bound", "bound_whitened"}),
    "scramble": (scramble, {"r2", "r2_inverse", "orthogonality"}),
    "noise": (lambda z: z + np.random.default_rng(int(1e6 * z[0, 0] ** 2)).standard_normal(z.shape), {"r2", "bound"}),
    "scaling": (lambda z: 3 * z, {"bound"}),
    "missing dimension": (lambda z: z[:, :2], {"r2", "orthogonality"}),
    "surplus dimension": (lambda z: np.c_[z, (z[:, :1] ** 2 - 1) / math.sqrt(2)], {"r2_inverse", "bound"}),
    "collapsed dimension": (lambda z: np.c_[z[:, :2], np.full(len(z), 0.8)], {"r2", "orthogonality", "bound"}),
    "constant": (lambda z: np.full_like(z, 0.8), {"r2", "r2_inverse", "orthogonality", "bound", "bound_whitened"}),
    "almost constant": (lambda z: 0.8 + 1e-9 * z**2, {"r2", "r2_inverse", "bound", "bound_whitened"}),
}


@pytest.mark.parametrize("name", REJECTED)
def test_all_other_maps_are_rejected(name: str):
    encode, expected = REJECTED[name]
    verdicts = verdicts_of(encode)
    failed = {name for name, verdict in verdicts.items() if verdict.passed is False}
    assert expected <= failed, failed
    assert all(verdicts[name].advice for name in failed)
    json.dumps([verdict.to_json() for verdict in verdicts.values()])


def test_scaling_passes_after_whitening():
    verdicts = verdicts_of(lambda z: 3 * z, rows=40_000)
    assert verdicts["orthogonality"].passed and verdicts["bound_whitened"].passed and not verdicts["bound"].passed
    assert verdicts["orthogonality_raw"].value == pytest.approx(8)


def test_wrong_rho_is_reported_when_the_error_exceeds_the_bound():
    """Pairs closer than the given ρ allows make D small; the measured error then exceeds the bound."""
    z, z_next = pairs(6000, 3, rho=0.99)
    h, h_next = ((v**2 - 1) / math.sqrt(2) for v in (z, z_next))
    verdicts = {v.name: v for v in certify(h, h_next, z, rho=0.5, replicates=60)}
    assert verdicts["error_to_bound_whitened"].passed is False
    assert "assumption" in verdicts["error_to_bound_whitened"].advice


def test_estimated_rho_is_used_at_its_upper_limit():
    z, z_next = pairs()
    rho = Estimate(0.9, 0.88, 0.91, 800)
    verdicts = {v.name: v for v in certify(z, z_next, rho=rho, replicates=60)}
    plain = {v.name: v for v in certify(z, z_next, rho=0.91, replicates=60)}
    assert verdicts["bound"].value == plain["bound"].value and "0.9100, the upper limit" in verdicts["bound"].advice
    assert "ρ was estimated" not in plain["bound"].advice
    own = {v.name: v for v in certify(z, z_next, replicates=20)}["bound"]
    found = nonlinear_rho(z, z_next)
    assert found.high > 0.9 and f"{found.high:.4f}, the upper limit" in own.advice


def test_nulls_of_epsilon_match_rotations():
    found = {"epsilon": [], "epsilon_whitened": []}
    null = {}
    for seed in range(40):
        z, z_next = pairs(600, 4, seed)
        for verdict in certify(z, z_next, rho=RHO, seed=seed, replicates=2):
            if verdict.name in found:
                found[verdict.name].append(verdict.value**2)
                null[verdict.name] = verdict.null
    for name, squares in found.items():
        assert math.sqrt(np.mean(squares)) == pytest.approx(null[name], rel=0.15)


def test_bounds_do_not_depend_on_the_truth():
    with_truth = verdicts_of(np.tanh)
    without = verdicts_of(np.tanh, z=None)
    assert {name: with_truth[name] for name in without} == without


def test_verdict_to_json():
    plain = verdicts_of(lambda z: z)["r2"].to_json()
    names = ["name", "value", "low", "high", "n", "null", "threshold", "direction", "passed", "advice"]
    assert list(plain) == names
    assert plain["name"] == "r2" and plain["direction"] == "higher" and plain["threshold"] == 0.98


def test_result_is_deterministic_by_seed():
    def bent(z: np.ndarray) -> np.ndarray:
        return np.tanh(z)

    assert verdicts_of(bent) == verdicts_of(bent)
    assert verdicts_of(bent)["r2"] != verdicts_of(bent, seed=1)["r2"]


def test_arrays_are_not_modified_and_any_precision_is_accepted():
    z, z_next = pairs(200)
    kept = z.copy()
    single = certify(z.astype(np.float32), z_next.astype(np.float32), z.astype(np.float32), rho=RHO, replicates=20)
    double = certify(z, z_next, z, rho=RHO, replicates=20)
    assert np.array_equal(z, kept)
    for a, b in zip(single, double, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-4), a.name


def test_groups_are_not_split():
    """Ten copies of each row: if split by row, copies leak, and latents that encode only the row's identity pass."""
    rng = np.random.default_rng(0)
    z = np.repeat(rng.standard_normal((60, 2)), 20, axis=0)
    identity = np.repeat(rng.standard_normal((60, 55)), 20, axis=0)  # random features, one vector per group
    groups = np.repeat([f"episode {i}" for i in range(60)], 20)
    by_row = {v.name: v for v in certify(identity, -identity, z, replicates=30)}
    by_group = {v.name: v for v in certify(identity, -identity, z, groups=groups, replicates=30)}
    assert by_row["r2"].value > 0.9
    assert by_group["r2"].value < 0.3 and by_group["r2"].passed is False


def with_nan(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[5, 1] = array[9, 0] = np.nan
    array[7, 2] = np.inf
    return array


Z, Z_NEXT = pairs(40)
WIDE = np.random.default_rng(4).standard_normal((40, 25))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            (with_nan(Z), Z_NEXT, Z),
            {},
            r"'h' has 3 NaN .*row 5.*0, 1, 2",
        ),
        ((Z, with_nan(Z_NEXT), Z), {}, "'h_next' has 3 NaN"),
        ((with_nan(Z), with_nan(Z_NEXT), with_nan(Z)), {}, "'h' has 3 NaN"),
        ((Z, Z_NEXT, with_nan(Z)), {}, "'z' has 3 NaN"),
        ((Z, Z_NEXT[:, :2], Z), {}, r"'h' and 'h_next'.*\(40, 3\) and \(40, 2\)"),
        ((Z, Z_NEXT[:39], Z), {}, "'h' has 40, 'h_next' has 39"),
        ((Z, Z_NEXT, Z[:30]), {}, "'z' has 30"),
        ((Z, Z_NEXT, Z), {"groups": np.arange(39)}, "'groups' has 39"),
        ((Z[:, 0], Z_NEXT[:, 0], Z), {}, r"'h'.*\(40,\)"),
        ((Z, Z_NEXT, Z[:, 0]), {}, r"'z'.*\(40,\)"),
        ((Z[:, :0], Z_NEXT[:, :0], Z), {}, r"'h'.*\(40, 0\)"),
        ((Z[:19], Z_NEXT[:19], Z[:19]), {}, "20 rows.* 19"),
        ((WIDE, -WIDE, Z), {}, "25 dim.* 26 .*20 and 20"),
        ((Z, Z_NEXT, np.ones_like(Z)), {}, "'z' is constant"),
        ((1e200 * Z, Z_NEXT, Z), {}, r"'h' has values up to .*e\+200, too large"),
        ((1e-200 * Z, Z_NEXT, Z), {}, "'h' varies by .*e-200"),
        (([[1.0], [2.0, 3.0]], Z_NEXT, Z), {}, "'h'"),
        ((Z, Z.copy(), Z), {}, "'h' and 'h_next' are equal"),
        ((Z, Z_NEXT, Z), {"replicates": 0}, "replicate.*0"),
        ((Z[:0], Z_NEXT[:0], Z[:0]), {}, "'h'.* 0"),
        ((Z, Z_NEXT, Z), {"groups": np.arange(40) // 20}, "'groups'.*3.* 2"),
        ((Z, Z_NEXT, Z), {"rho": 1.0}, r"rho.*1\.0"),
        ((Z, Z_NEXT, Z), {"rho": 0.0}, r"rho.*0\.0"),
        ((Z, Z_NEXT), {}, "'rho'.*'z'"),
        ((Z.astype(str), Z_NEXT, Z), {}, "'h' must hold numbers"),
    ],
)
def test_errors_name_the_array(arguments, options, message: str):
    with pytest.raises(InputError, match=message):
        certify(*arguments, **options)


def test_minimum_number_of_rows_is_accepted():
    z, z_next = pairs(20)
    names = {verdict.name for verdict in certify(z, z_next, z, rho=RHO, replicates=20)}
    assert names >= WITH_TRUTH | WITHOUT | THEOREM


def test_lists_and_tensors_are_accepted():
    z, z_next = pairs(40)
    expected = {v.name: repr(v) for v in certify(z, z_next, z, rho=RHO, replicates=20)}
    turns: list[Callable[[np.ndarray], Any]] = [np.ndarray.tolist, lambda a: torch.tensor(a, requires_grad=True)]
    for turn in turns:
        found = certify(turn(z), turn(z_next), turn(z), rho=RHO, replicates=20)
        assert {v.name: repr(v) for v in found} == expected


@pytest.mark.parametrize(("rows", "dim"), [(100, 2), (1000, 8), (4000, 32)])
def test_intervals_contain_their_values(rows: int, dim: int):
    """Resampling inflates a norm, so plain percentiles would lie above ε."""
    z, z_next = pairs(rows, dim)
    for verdict in certify(z, z_next, rho=RHO, replicates=60):
        assert verdict.low <= verdict.value <= verdict.high, verdict


SCRIPT = """
import time
import numpy as np
from jepatlas.identifiability import certify
z, noise = np.random.default_rng(0).standard_normal((2, 4000, 64))
start = time.process_time()
certify(z, 0.9 * z + 0.4 * noise, z, rho=0.9, replicates=50)
print(time.process_time() - start)
"""


@pytest.mark.slow
def test_runtime_at_64_dimensions():
    """A tenth of the default replicates takes about half a second on one thread; more threads would add idle time."""
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=os.environ | threads, capture_output=True, check=True)
    assert float(ran.stdout) < 3


def test_zero_bound_causes_no_division():
    """Signs in balanced groups: Cov h = 1 in every resample, and views equal up to rounding have no gap."""
    signs = np.tile([[1.0], [-1.0]], (20, 1))
    other = np.nextafter(signs, 0)
    verdicts = {v.name: v for v in certify(signs, other, -signs, rho=0.5, groups=np.arange(40) // 2, replicates=20)}
    assert verdicts["bound"].low < 1e-30 and verdicts["bound"].high < 1e-30
    assert verdicts["error_to_bound"].passed is None and verdicts["error_to_bound"].low == 0
    doubled = certify(signs, other, 2 * signs, rho=0.5, groups=np.arange(40) // 2, replicates=20)
    assert {v.name: v for v in doubled}["error_to_bound"].passed is False


STATES, STEP_NOISE = np.random.default_rng(0).standard_normal((2, 3000, 2))
STATES_NEXT = 0.8 * STATES + 0.6 * STEP_NOISE


@pytest.mark.parametrize("kind", ["u1", "i1", "f2"])
def test_result_matches_the_same_numbers_in_full_precision(kind: str):
    """Integers must not wrap around, and half precision must not overflow."""
    middle = 128 if kind == "u1" else 0
    h, h_next = ((v * 30 + middle).clip(middle - 120, middle + 120).astype(kind) for v in (STATES, STATES_NEXT))
    assert bound_terms(h, h_next, 0.8) == pytest.approx(bound_terms(h * 1.0, h_next.astype(float), 0.8), rel=1e-3)


def test_booleans_are_accepted():
    h, h_next = STATES > 0, STATES_NEXT > 0
    assert find_trajectories(h, h_next).blocks is None
    assert bound_terms(h, h_next, 0.8)["epsilon"] == pytest.approx(bound_terms(h * 1.0, h_next * 1.0, 0.8)["epsilon"])


def test_coordinatewise_curve_is_not_a_shear():
    found = diagnose(certify(np.sin(STATES), np.sin(STATES_NEXT), STATES, replicates=50))
    assert found is not None and found.kind == "warp"
