"""Share of the worst direction against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from jepatlas.core.linear import hold_out
from jepatlas.identifiability.composition import explain, worst_direction
from jepatlas.identifiability.resampling import Halves

Z = np.random.default_rng(0).standard_normal((6000, 6))
TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))[0]
NOISE = np.random.default_rng(4).standard_normal((6000, 1))


def shares(h: np.ndarray) -> list[float]:
    rng = np.random.default_rng(1)
    verdicts = worst_direction(explain(Halves(h, Z, hold_out(len(h), rng)), rng), rng, complete=True, replicates=30)
    assert [v.name for v in verdicts] == ["worst_nonlinear", "worst_noise"]
    assert all(v.passed is None and v.low <= v.value <= v.high for v in verdicts)
    return [v.value for v in verdicts]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Z[:, 5:], [0, 0]),
        (Z[:, 5:] ** 3, [0.4, 0]),  # E z⁶ = 15, of which (E z⁴)² = 9 is linear
        (Z[:, 5:] + Z[:, :1] ** 2, [2 / 3, 0]),
        (3 * (Z[:, 5:] + 0.5 * NOISE), [0, 0.2]),
    ],
    ids=["rotation", "cube", "shear", "noise"],
)
@pytest.mark.parametrize("turn", [np.eye(6), TURN], ids=["plain", "turned"])
def test_shares_match_closed_forms_with_other_directions_present(
    last: np.ndarray, expected: list[float], turn: np.ndarray
) -> None:
    assert shares(np.c_[Z[:, :5], last] @ turn) == pytest.approx(expected, abs=0.06)


def test_constant_latents_have_no_shares() -> None:
    assert shares(np.ones_like(Z))[0] == 0
