"""Verdicts on latents that have too many dimensions, too few, or just enough, with and without truth."""

from __future__ import annotations

import numpy as np
import pytest
from gaussian_worlds import pairs, rotation

from jepatlas.core.errors import InputError
from jepatlas.core.records import Verdict
from jepatlas.identifiability import SpectrumSettings, dimension_verdicts

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
def test_with_truth(name: str):
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
    if name not in ("bent", "folded"):  # their own ladder is rougher than so few features can follow
        assert failed == FAILED[name]


def test_what_is_lost_has_a_name():
    verdicts = judged("missing", truth=True)
    assert verdicts["coverage"].value == 2 and verdicts["coverage"].advice.endswith("z[2].")
    assert "z[2] 0.00" in verdicts["captured"].advice and "z[0] 1.00" in verdicts["captured"].advice


def test_harmonics_are_counted_and_the_rest_is_minimal():
    verdicts = judged("harmonics", truth=True)
    assert verdicts["state_directions"].value == 2
    assert verdicts["state_directions"].advice.startswith("3 of 5 ")
    assert verdicts["minimal_r2_lost"].high < 0.02


def test_without_truth_a_missing_direction_cannot_be_seen():
    verdict = judged("missing")["missing_directions"]
    assert verdict.passed is None and np.isnan(verdict.value)
    assert verdict.advice.startswith("Undecided")


@pytest.mark.parametrize(("name", "missing"), [("missing", 1), ("enough", 0), ("harmonics", 0)])
def test_observations_show_that_one_is_missing_but_not_which(name: str, missing: int):
    verdict = judged(name, seen=True)["missing_directions"]
    assert verdict.value == missing and verdict.passed is (missing == 0)
    assert ("Train with more latents" in verdict.advice) is bool(missing)


def test_undecided_is_no_failure():
    verdicts = {
        v.name: v for v in dimension_verdicts(*np.random.default_rng(0).standard_normal((2, 400, 2)), settings=QUICK)
    }
    assert verdicts["state_directions"].passed is None and np.isnan(verdicts["state_directions"].value)
    z, z_next = pairs(3000, 2, 0.9)
    noise = np.random.default_rng(1).standard_normal((2, 3000, 2))
    seen = dimension_verdicts(z, z_next, x=noise[0], x_next=noise[1], settings=QUICK)[-1]
    assert seen.passed is None and "ndecided" in seen.advice


def test_bad_input():
    z, z_next = pairs(500, 2, 0.9)
    with pytest.raises(InputError, match="'x' and 'x_next'"):
        dimension_verdicts(z, z_next, x=z)
    with pytest.raises(InputError, match="'h' and 'h_next'"):
        dimension_verdicts(z, z_next[:, :1])
    with pytest.raises(InputError, match=r"'z' has .* NaN"):
        dimension_verdicts(z, z_next, np.where(z > 2, np.nan, z))
