"""Number types of latents: integers do not wrap around, half precision does not overflow."""

import numpy as np
import pytest

from jepatlas.identifiability import bound_terms, certify, diagnose, time_blocks

RNG = np.random.default_rng(0)
Z, NOISE = RNG.standard_normal((2, 3000, 2))
Z_NEXT = 0.8 * Z + 0.6 * NOISE


@pytest.mark.parametrize("kind", ["u1", "i1", "f2"])
def test_result_matches_the_same_numbers_in_full_precision(kind: str):
    middle = 128 if kind == "u1" else 0
    h, h_next = ((v * 30 + middle).clip(middle - 120, middle + 120).astype(kind) for v in (Z, Z_NEXT))
    assert bound_terms(h, h_next, 0.8) == pytest.approx(bound_terms(h * 1.0, h_next.astype(float), 0.8), rel=1e-3)


def test_booleans_are_accepted():
    h, h_next = Z > 0, Z_NEXT > 0
    assert time_blocks(h, h_next) is None
    assert bound_terms(h, h_next, 0.8)["epsilon"] == pytest.approx(bound_terms(h * 1.0, h_next * 1.0, 0.8)["epsilon"])


def test_coordinatewise_curve_is_not_a_shear():
    found = diagnose(certify(np.sin(Z), np.sin(Z_NEXT), Z, replicates=50))
    assert found is not None and found.kind == "warp"
