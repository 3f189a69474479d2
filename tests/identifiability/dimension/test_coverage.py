"""What is found of the state, in whatever form: counted, and named."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.linear import hold_out
from jepatlas.core.records import Verdict
from jepatlas.identifiability.dimension.captured import coverage
from jepatlas.identifiability.regressions import decode
from jepatlas.identifiability.resampling import Halves

Z = np.random.default_rng(0).standard_normal((6000, 3))
TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
NOISE = np.random.default_rng(4).standard_normal((6000, 3))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def halves(h: np.ndarray, z: np.ndarray = Z) -> Halves:
    return Halves(h, z, hold_out(len(h), rng()))


def covered(h: np.ndarray, z: np.ndarray = Z) -> Verdict:
    return coverage(halves(h, z), decode(halves(h, z), rng()), rng(), replicates=30)


@pytest.mark.parametrize(
    ("h", "count"),
    [
        (Z @ TURN, 3),
        (np.exp(Z @ TURN), 3),
        (np.c_[Z[:, :2] ** 3, NOISE[:, 0]], 2),
        ((Z @ TURN)[:, :1], 1),
        (NOISE, 0),
        (np.zeros_like(Z), 0),
    ],
    ids=["rotation", "warp", "one lost", "two lost", "unrelated", "constant"],
)
def test_directions_of_the_state_are_counted(h: np.ndarray, count: int):
    verdict = covered(h)
    assert verdict.value == verdict.low == verdict.high == count and verdict.threshold == 3
    assert verdict.passed is (count == 3)


def test_what_cannot_be_found_is_named_in_any_units():
    assert "missing: z[2]." in covered(Z[:, :2], Z * np.array([1e3, 1.0, 1e-3])).advice
    assert "mixture" in covered((Z @ TURN)[:, :2], Z).advice


def test_a_state_that_does_not_vary_is_not_missed():
    verdict = covered(Z[:, :2], np.c_[Z[:, :2], np.full(6000, 7.0)])
    assert verdict.value == verdict.threshold == 2


def test_many_dimensions_and_few_rows_do_not_make_a_direction_look_lost():
    """h = z + e/2 leaves a fifth of each direction; the largest of 40 sampled eigenvalues is more than twice that."""
    z, e = np.random.default_rng(3).standard_normal((2, 400, 40))
    split = Halves(z + e / 2, z, hold_out(400, rng()))
    found = coverage(split, decode(split, rng()), rng(), 30)
    assert found.value == 40
