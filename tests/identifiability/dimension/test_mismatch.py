"""A certificate of more latents than states, or fewer, says what they hold; of as many, nothing is added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gaussian_worlds import pairs, rotation

from jepatlas.core.records import Verdict
from jepatlas.identifiability import certify, fit_pair_ladder
from jepatlas.workflows.certify import certificate

WIDE, NARROW = {"state_directions", "minimal_r2_lost"}, {"captured", "superposition"}
Encode = Callable[[np.ndarray], np.ndarray]


def certified(encode: Encode, n: int, rows: int = 2000, **options) -> dict[str, Verdict]:
    z, z_next = pairs(rows, n, 0.9)
    verdicts = certify(encode(z), encode(z_next), z, replicates=30, **options)
    return {verdict.name: verdict for verdict in verdicts}


def harmonic(z: np.ndarray) -> np.ndarray:
    return np.c_[z, z[:, :1] * z[:, 1:]] @ rotation(3)


def test_as_many_latents_as_states():
    assert not certified(lambda z: z @ rotation(2), 2).keys() & (WIDE | NARROW)


def test_more_latents_than_states_and_a_ladder_that_was_read_is_not_read_again():
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
def test_without_a_spectrum_it_is_undecided(encode: Encode):
    found = certified(encode, 2, rows=120)["state_directions"]
    assert found.passed is None and np.isnan(found.value) and "could not be computed" in found.advice


def test_the_summary_mentions_the_mismatch():
    for encode, n, words in (
        (harmonic, 2, "1 of 3 independent latents"),
        (lambda z: z[:, :1], 2, "z[1] most"),
    ):
        z, z_next = pairs(1500, n, 0.9)
        record = certificate("", {"h": encode(z), "h_next": encode(z_next), "z": z}, rho=0.9, seed=0)
        assert words in record.summary


def test_columns_of_noise_are_no_functions_of_the_others():
    z, z_next = pairs(3000, 2, 0.9)
    noise, noise_next = np.random.default_rng(9).standard_normal((2, 3000, 2))
    verdicts = certify(np.c_[z, noise], np.c_[z_next, noise_next], z, replicates=20)
    advice = {verdict.name: verdict for verdict in verdicts}["state_directions"].advice
    assert advice.startswith("2 of 4 ") and "noise" in advice and "functions of the other" not in advice
