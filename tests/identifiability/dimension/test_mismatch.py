"""Verdicts for more or fewer latents than states, alone and in certificates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gaussian_worlds import pairs, rotation

from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.identifiability import SpectrumSettings, certify, dimension_verdicts, fit_pair_ladder
from jepatlas.workflows.certify import certificate

WIDE, NARROW = {"state_directions", "minimal_r2_lost"}, {"captured", "superposition"}
Encode = Callable[[np.ndarray], np.ndarray]


def certified(encode: Encode, n: int, rows: int = 2000, **options) -> dict[str, Verdict]:
    z, z_next = pairs(rows, n, 0.9)
    verdicts = certify(encode(z), encode(z_next), z, replicates=30, **options)
    return {verdict.name: verdict for verdict in verdicts}


def harmonic(z: np.ndarray) -> np.ndarray:
    return np.c_[z, z[:, :1] * z[:, 1:]] @ rotation(3)


def test_equal_numbers_of_latents_and_states():
    assert not certified(lambda z: z @ rotation(2), 2).keys() & (WIDE | NARROW)


def test_more_latents_than_states_reuse_a_given_ladder():
    found = certified(harmonic, 2)
    assert found.keys() >= WIDE and not found.keys() & NARROW
    assert (found["state_directions"].value, found["state_directions"].threshold) == (2, 3)
    assert found["minimal_r2_lost"].passed is True
    views = map(harmonic, pairs(2000, 2, 0.9))
    assert certified(harmonic, 2, ladder=fit_pair_ladder(next(views), next(views))) == found


def test_fewer_latents_than_states():
    found = certified(lambda z: z[:, :2] @ rotation(2), 3)
    assert found.keys() >= NARROW and not found.keys() & WIDE
    assert found["captured"].passed is False and "z[2]" in found["captured"].advice
    assert found["superposition"].passed is True


@pytest.mark.parametrize("encode", [lambda z: np.ones((len(z), 3)), harmonic], ids=["constant", "few rows"])
def test_verdict_is_undecided_without_a_spectrum(encode: Encode):
    found = certified(encode, 2, rows=120)["state_directions"]
    assert found.passed is None and np.isnan(found.value) and "could not be computed" in found.advice


def test_summary_mentions_the_mismatch():
    for encode, n, words in (
        (harmonic, 2, "1 of 3 independent latents"),
        (lambda z: z[:, :1], 2, "z[1] most"),
    ):
        z, z_next = pairs(1500, n, 0.9)
        record = certificate("", {"h": encode(z), "h_next": encode(z_next), "z": z}, rho=0.9, seed=0)
        assert words in record.summary


def test_noise_columns_are_not_functions_of_the_others():
    z, z_next = pairs(3000, 2, 0.9)
    noise, noise_next = np.random.default_rng(9).standard_normal((2, 3000, 2))
    verdicts = certify(np.c_[z, noise], np.c_[z_next, noise_next], z, replicates=20)
    advice = {verdict.name: verdict for verdict in verdicts}["state_directions"].advice
    assert advice.startswith("2 of 4 ") and "noise" in advice and "functions of the other" not in advice


QUICK = SpectrumSettings(features=64, length_scales=(0.7, 1.6), ridges=(1e-4, 1e-2), pilot=3000, replicates=30)


def harmonics(z: np.ndarray) -> np.ndarray:
    h = np.c_[z, z[:, :1] * z[:, 1:], (z**2 - 1) / np.sqrt(2)]
    return h @ rotation(h.shape[1])


ENCODERS = {
    "enough": (2, lambda z: z @ rotation(2)),
    "harmonics": (2, harmonics),
    "twice": (2, lambda z: np.c_[z, z @ rotation(2)]),
    "missing": (3, lambda z: z[:, :2] @ rotation(2)),
    "bent": (2, lambda z: np.sinh(1.5 * z) @ rotation(2)),
    "folded": (2, lambda z: np.round(2 * z[:, :1]) + np.tanh(z[:, 1:]) / 3),
}
FAILED = {
    "enough": set(),
    "harmonics": {"state_directions"},
    "twice": {"effective_rank"},
    "missing": {"coverage", "captured"},
    "bent": {"captured"},
    "folded": {"captured", "superposition"},
}


def judged(name: str, *, truth: bool = False, seen: bool = False, rows: int = 5000) -> dict[str, Verdict]:
    n, encode = ENCODERS[name]
    z, z_next = pairs(rows, n, 0.9)
    x, x_next = (z @ rotation(n, 5), z_next @ rotation(n, 5)) if seen else (None, None)
    known = z if truth else None
    verdicts = dimension_verdicts(encode(z), encode(z_next), known, x, x_next, settings=QUICK, replicates=50)
    return {verdict.name: verdict for verdict in verdicts}


@pytest.mark.parametrize("name", ENCODERS)
def test_verdicts_with_true_states(name: str):
    verdicts = judged(name, truth=True)
    assert list(verdicts) == [
        "effective_rank",
        "state_directions",
        "coverage",
        "captured",
        "superposition",
        "minimal_r2_lost",
    ]
    failed = {verdict.name for verdict in verdicts.values() if verdict.passed is False}
    assert failed - {"state_directions"} == FAILED[name] - {"state_directions"}
    if name not in ("bent", "folded"):  # too few features to resolve their own ladder
        assert failed == FAILED[name]


def test_missing_direction_is_named():
    verdicts = judged("missing", truth=True)
    assert verdicts["coverage"].value == 2 and verdicts["coverage"].advice.endswith("z[2].")
    assert "z[2] 0.00" in verdicts["captured"].advice and "z[0] 1.00" in verdicts["captured"].advice


def test_harmonics_are_counted_and_the_minimal_subspace_remains():
    verdicts = judged("harmonics", truth=True)
    assert verdicts["state_directions"].value == 2
    assert verdicts["state_directions"].advice.startswith("3 of 5 ")
    assert verdicts["minimal_r2_lost"].high < 0.02


def test_missing_direction_is_not_detected_without_states():
    verdict = judged("missing")["missing_directions"]
    assert verdict.passed is None and np.isnan(verdict.value)
    assert verdict.advice.startswith("Undecided")


@pytest.mark.parametrize(("name", "missing"), [("missing", 1), ("enough", 0), ("harmonics", 0)])
def test_observations_reveal_a_missing_direction_but_not_which(name: str, missing: int):
    verdict = judged(name, seen=True)["missing_directions"]
    assert verdict.value == missing and verdict.passed is (missing == 0)
    assert ("Train with more latents" in verdict.advice) is bool(missing)


def test_undecided_is_not_a_failure():
    verdicts = {
        v.name: v for v in dimension_verdicts(*np.random.default_rng(0).standard_normal((2, 400, 2)), settings=QUICK)
    }
    assert verdicts["state_directions"].passed is None and np.isnan(verdicts["state_directions"].value)
    z, z_next = pairs(3000, 2, 0.9)
    noise = np.random.default_rng(1).standard_normal((2, 3000, 2))
    seen = dimension_verdicts(z, z_next, x=noise[0], x_next=noise[1], settings=QUICK)[-1]
    assert seen.passed is None and "ndecided" in seen.advice


def test_invalid_inputs_are_rejected():
    z, z_next = pairs(500, 2, 0.9)
    with pytest.raises(InputError, match="'x' and 'x_next'"):
        dimension_verdicts(z, z_next, x=z)
    with pytest.raises(InputError, match="'h' and 'h_next'"):
        dimension_verdicts(z, z_next[:, :1])
    with pytest.raises(InputError, match=r"'z' has .* NaN"):
        dimension_verdicts(z, z_next, np.where(z > 2, np.nan, z))
